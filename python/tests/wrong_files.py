"""The wrong experiment files of the Rust tests, `cases.diff`, each with the message it is refused with."""

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

TESTS = Path(__file__).parents[2] / "crates/experiment/tests"


@dataclass(frozen=True)
class WrongFile:
    """A file's name without its ending, its bytes, and what is said of it."""

    name: str
    content: bytes
    said: str


def wrong_files() -> list[WrongFile]:
    """Those of the table, which says what its lines mean."""
    cases = (TESTS / "cases.diff").read_text(encoding="utf-8").split("\n=== ")[1:]
    return [_edited(case) for case in cases]


def _edited(case: str) -> WrongFile:
    head, *lines = (line for line in case.split("\n") if line)
    head, _, encoding = head.partition(" (in ")
    name, _, base = head.partition(" (from ")
    said = "".join(f"{line.removeprefix('> ')}\n" for line in lines if line.startswith(">"))
    edits = [line for line in lines if not line.startswith(">")]
    good = f"good/{base.removesuffix(')') or 'two-flows'}.toml"
    text = "" if base == "nothing)" else (TESTS / good).read_text(encoding="utf-8")
    for between, hunk in groupby(edits, lambda line: line == "@@"):
        if not between:
            text = _edit(text, list(hunk), name)
    return WrongFile(name, text.encode(encoding.removesuffix(")") or "utf-8"), said)


def _edit(text: str, hunk: list[str], name: str) -> str:
    old, new = ("".join(f"\n{line[1:]}" for line in hunk if line[0] != sign) for sign in "+-")
    if not text:
        return new[1:] + "\n"
    assert f"\n{text}".count(f"{old}\n") == 1, f"{name}: not once in the good file: {old}"
    return f"\n{text}".replace(f"{old}\n", f"{new}\n", 1)[1:]
