"""A crate to write a mechanism in Rust in: compiled apart from Inprofile, built into a wheel of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

from .registry import built_in

Kind = Literal["marker", "aqm"]

_TEMPLATE: Final = Path(__file__).parent / "template"
#: What a crate depends on; where these are, Inprofile's sources are.
_NEEDED: Final = ("core", "experiment", "python", "sim", "trials")
_FILES: Final = {
    "Cargo.toml": "Cargo.toml.in",
    "pyproject.toml": "pyproject.toml.in",
    ".gitignore": "gitignore.in",
    "README.md": "README.md.in",
    "src/lib.rs": "{kind}.lib.rs.in",
    "src/law.rs": "{kind}.law.rs.in",
    "python/inprofile_{name}/__init__.py": "init.py.in",
    "{name}.toml": "{kind}.toml.in",
}
_WORDS: Final = {"marker": "marker", "aqm": "discipline"}


class NoCrates(Exception):
    """Inprofile's sources in Rust are not where they were looked for; the text says where, and what to do."""


def find_crates(given: Path | None = None) -> Path:
    """The folder `crates` of a checkout: of the one that is given, that this package runs from, or around us.

    Raises NoCrates.
    """
    if given is not None:
        for place in (given, given / "crates"):
            if _complete(place):
                return place.resolve()
        raise NoCrates(
            f"{given}: this is no checkout of Inprofile; there should be crates/core/Cargo.toml below it"
        )
    for place in _around():
        if _complete(place / "crates"):
            return (place / "crates").resolve()
    raise NoCrates(
        "Inprofile's sources are needed, as a mechanism in Rust is compiled with them, and neither this"
        " installation nor the folders above this one are a checkout:"
        " get one of this version and name it with --crates DIR"
    )


def _around() -> Iterator[Path]:
    yield Path(__file__).resolve().parents[3]
    here = Path.cwd()
    yield from (here, *here.parents)


def _complete(place: Path) -> bool:
    return all((place / crate / "Cargo.toml").is_file() for crate in _NEEDED)


def write_crate(name: str, kind: Kind, folder: Path, crates: Path) -> list[Path]:
    """Write a crate with a mechanism called `name` into a new folder; its files.

    Raises ValueError for a name that cannot be one, FileExistsError.
    """
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or "__" in name or name.endswith("_"):
        raise ValueError(
            f'"{name}" cannot be a mechanism\'s name: write lower-case letters, digits and single'
            " underscores, a letter first"
        )
    if name in built_in():
        raise ValueError(f'there is a mechanism called "{name}" already: choose another name')
    if '"' in str(crates) or "\\" in str(crates):
        raise ValueError(
            f"{crates}: a folder with a quotation mark or a backslash in its name cannot be used"
        )
    words = {"NAME": name, "DASHED": name.replace("_", "-"), "KIND": _WORDS[kind], "CRATES": str(crates)}
    texts = {
        path.format(name=name): _filled((_TEMPLATE / template.format(kind=kind)).read_text("utf-8"), words)
        for path, template in _FILES.items()
    }
    folder.mkdir(parents=True)
    for path, text in texts.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return [folder / path for path in texts]


def _filled(text: str, words: dict[str, str]) -> str:
    """The text with a value for every word between two @.

    >>> _filled("@NAME@s", {"NAME": "red"})
    'reds'
    """
    return re.sub(r"@([A-Z]+)@", lambda found: words[found[1]], text)
