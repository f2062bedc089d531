"""The experiments that `inprofile new` writes."""

from importlib.resources import files

__all__ = ["STARTER", "starter"]


def starter(file: str, plan: bool = False) -> str:
    """A commented experiment that runs and calls itself `file`; with `plan`, one for inprofile plan."""
    name = "plan.toml" if plan else "starter.toml"
    return files(__package__).joinpath(name).read_text("utf-8").replace("{file}", file)


STARTER = starter("experiment.toml")
"""A commented experiment that runs."""
