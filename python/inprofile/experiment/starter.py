"""The experiment that `inprofile new` writes."""

from importlib.resources import files

__all__ = ["STARTER", "starter"]


def starter(file: str) -> str:
    """A commented experiment that runs; its head tells how, calling itself `file`."""
    return files(__package__).joinpath("starter.toml").read_text("utf-8").replace("{file}", file)


STARTER = starter("experiment.toml")
"""A commented experiment that runs."""
