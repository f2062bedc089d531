"""The paper that `inprofile new-paper` writes: a whole one, small, to be changed line by line."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from ..checks import is_name

__all__ = ["write_paper"]

#: What each file is called in the paper's folder. Here a `paper.toml` would be a paper of ours.
_FILES = {"about.toml": "paper.toml", "link.toml": "link.toml", "abstract.txt": "abstract.txt"}


def write_paper(folder: Path) -> list[Path]:
    """Write a paper called as `folder` is, ready to be reproduced; return its files.

    Raises ValueError for a name that no paper can have, and FileExistsError.
    """
    if not is_name(folder.name):
        raise ValueError(f"a paper cannot be called {folder.name!r}: write small letters, digits and hyphens")
    folder.mkdir(parents=True)
    made = []
    for source, name in _FILES.items():
        text = files(__package__).joinpath(source).read_text("utf-8")
        made.append(folder / name)
        made[-1].write_text(text.replace("{name}", folder.name), "utf-8")
    return made
