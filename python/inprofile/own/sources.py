"""The code of mechanisms in Python, as results hold it: its file's name, text and digests.

It is read by people and registered by them; nothing here runs what a result brings along.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .registry import digests, registered, written


@dataclass(frozen=True)
class Source:
    """A file with mechanisms."""

    file: str
    """Its name; empty for what was typed into a session."""
    text: str | None
    """Its text when the classes were registered; None where that is not known."""
    mechanisms: Mapping[str, str]
    """The mechanisms in it that an experiment names, with the SHA-256 that its results have of them."""

    def to_json(self) -> dict[str, Any]:
        """As a result holds it."""
        return {"file": self.file, "text": self.text, "mechanisms": dict(self.mechanisms)}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Source:
        """As it was stored. Raises KeyError, TypeError."""
        text = stored["text"]
        named = {str(name): str(digest) for name, digest in stored["mechanisms"].items()}
        return cls(str(stored["file"]), None if text is None else str(text), named)


def sources_of(names: Iterable[str]) -> tuple[Source, ...]:
    """The files of these registered classes, in the order of their names."""
    found: dict[tuple[str, str | None], dict[str, str]] = {}
    for name, digest in digests(list(names)).items():
        found.setdefault(written(name), {})[name] = digest
    return tuple(Source(*key, mechanisms) for key, mechanisms in found.items())


def absent(sources: Sequence[Source]) -> str:
    """The code that is not registered as it was, and where it can be found; empty where all of it is."""
    here = digests(list(registered()))
    said = []
    for source in sources:
        for name, digest in source.mechanisms.items():
            if here.get(name) == digest:
                continue
            where = f"in {source.file}" if source.file else "typed into a session"
            now = f"other code here, SHA-256 {here[name]}" if name in here else "not registered here"
            said.append(f"{name}, a mechanism in Python, is {now}: it was {where}, SHA-256 {digest}")
    if said:
        said.append(
            "the result holds its text: read it, write it out with inprofile.own.write_sources, and register"
            " it with inprofile.own.load_classes or --mechanism"
            if all(source.text is not None for source in sources)
            else "the result does not hold its text: find the file, and name it with --mechanism"
        )
    return "\n  ".join(said)


def write_sources(sources: Iterable[Source], folder: str | Path) -> list[Path]:
    """Write the files of a result's mechanisms into a folder: `Provenance.sources`, `Sweep.sources`.

    Raises FileExistsError where a file is there already.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    made = []
    for number, source in enumerate(sources):
        if source.text is not None:
            # A result may come from anywhere: of its names only the last part counts.
            name = Path(source.file).name
            if not name.endswith(".py"):
                name = f"session{number or ''}.py"
            with (place / name).open("x", encoding="utf-8") as file:
                file.write(source.text)
            made.append(place / name)
    return made
