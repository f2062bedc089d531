"""What of a paper was at hand, and whether what is quoted stands in it.

`[[at_hand]]` lists the parts that were read: an abstract, a section, an artefact's README. One with a `file`,
in the paper's folder, is searched for every quote of it, whatever its line breaks and quotation marks; where
the file is not there, that is said, and nothing is taken for checked.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from .entry import Entry, PaperError

_SAME = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "−": "-", "×": "x"})


@dataclass(frozen=True)
class Part:
    """A part of a paper that was read, and how many of its quotes were found in the text here."""

    id: str
    title: str
    #: Where it can be read.
    where: str
    file: str
    #: Whether the text is in the folder.
    here: bool
    quotes: int

    @property
    def words(self) -> str:
        """What was checked, in words."""
        if not self.quotes:
            return "nothing is quoted from it"
        what = "one quote" if self.quotes == 1 else f"{self.quotes} quotes"
        if self.here:
            return f"{what}, found in {self.file}"
        missing = f"{self.file} is not in the folder" if self.file else "no text is named"
        return f"{what}, not checked here: {missing}"


def parts(top: Entry, folder: Path) -> list[Part]:
    """The parts that were at hand. Raises what `check_quotes` raises."""
    check_quotes(top, folder)
    claims = top.tables("claims")
    return [
        Part(
            part.id,
            part.title,
            part.where,
            part.word("file", ""),
            "file" in part and (folder / part.word("file")).is_file(),
            sum(claim.get("part") == part.id for claim in claims),
        )
        for part in top.tables("at_hand")
    ]


def check_quotes(top: Entry, folder: Path) -> None:
    """Refuse a claim that quotes no part that was at hand, and a quote that is not in the text here."""
    there = {part.id: part for part in top.tables("at_hand")}
    for claim in top.tables("claims") if there else ():
        for key in ("says", "quote", "part"):
            if not claim.word(key, ""):
                raise PaperError(
                    f"{claim.place()} has no source, as it lacks {key}: write where it stands (says), the"
                    " sentence (quote), and which of [[at_hand]] that is in (part)"
                )
        if claim.word("part") not in there:
            raise PaperError(f"{claim.place('part')} = {claim['part']!r}: write one of {', '.join(there)}")
        part = there[claim.word("part")]
        text = folder / part.word("file", "")
        if "file" in part and text.is_file():
            missing = _missing(claim.word("quote"), text.read_text("utf-8"))
            if missing is not None:
                raise PaperError(
                    f"{claim.place('quote')} is not in {text}{missing}: quote what stands there, with … where"
                    " words are left out"
                )


def _missing(quote: str, text: str) -> str | None:
    """None where the pieces of a quote stand in a text, in their order; else from which word on one does not.

    >>> _missing("the rate … of a link", "The rate of one link"), _missing("the rate", "The rate of one link")
    (' from “a link” on', None)
    """
    at, plain = 0, _plain(text)
    pieces = [p for piece in re.split(r"\[…\]|…|\.\.\.", quote) if (p := _plain(piece).strip())]
    for piece in pieces:
        found = plain.find(piece, at)
        if found < 0:
            words = piece.split(" ")
            there = next(n for n in range(len(words) - 1, -1, -1) if plain.find(" ".join(words[:n]), at) >= 0)
            return f" from “{' '.join(words[there:])}” on"
        at = found + len(piece)
    return None if pieces else ", as it has no words"


def _plain(text: str) -> str:
    """A text without its typography: ligatures, quotation marks, and words broken over lines."""
    plain = unicodedata.normalize("NFKC", text).translate(_SAME)
    return re.sub(r"\s+", " ", re.sub(r"(?<=\w)-\s*\n\s*(?=[a-z])", "", plain)).lower()
