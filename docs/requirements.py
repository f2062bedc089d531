"""Requirement, code, test: a table made from the comments that name a law.

A law is a section or an equation of a source: ``RFC 5681 §3.1``, ``RFC 5681, Eq. (4)``,
``draft-ietf-ccwg-bbr §5.3.1``, ``Hur 2006, Eq. (1)``. A bare ``§`` or ``Eq.`` belongs to the source named
before it in the same comment, else to the first one in the file's head note. A place is a file and the item
a comment stands at, so that the table outlives an edit elsewhere in the file.

    python docs/requirements.py            write the table into target/requirements.md
    python docs/requirements.py --check    1 if a law of TCP has no test that names it
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "target/requirements.md"
CRATES = "crates"
#: Where a law without a test is an error.
STRICT = "crates/sim/src/tcp/"

SOURCE = (
    r"RFC (?P<rfc>\d{3,4})|(?P<draft>draft-[a-z0-9]+(?:-[a-z0-9]+)+)"
    r"|(?P<paper>[A-Z][a-z]+(?: and [A-Z][a-z]+| et al\.)? (?:19|20)\d\d)"
)
PART = r"§ ?(?P<section>\d+(?:\.\d+)*)(?:(?:–| to )§?(?P<last>\d+(?:\.\d+)*))?"
EQUATION = r"Eq\. ?\(?(?P<equation>\d+)\)?(?:–\(?(?P<upto>\d+)\)?)?"
#: In "RFC 2697 §3, 2698 §3" the second number stands alone.
TOKEN = re.compile(rf"{SOURCE}|\b(?P<again>\d{{3,4}})(?=,? §)|{PART}|{EQUATION}")
RUSTDOC_LINK = re.compile(r"\[(`[^`]+`)\]\([\w:]+\)")
ITEM = re.compile(r"\b(?:fn|struct|enum|const(?! fn)|static|trait|mod|type|union) (\w+)")
MEMBER = re.compile(r"(?:pub(?:\([^)]*\))? )?(\w+)")
WIDTH = 150
#: How many comments are shown of a law.
SHOWN = 4


@dataclass
class Comment:
    """Consecutive lines of comment, and the item they stand at."""

    text: str
    item: str
    test: bool
    head: bool = False


@dataclass
class Law:
    """A section or an equation, where code and tests name it."""

    #: What code says of it, by how well that may fit: a comment that begins with a law says what it is.
    says: dict[int, dict[str, None]] = field(default_factory=dict)
    code: dict[str, None] = field(default_factory=dict)
    tests: dict[str, None] = field(default_factory=dict)
    strict: bool = False


def rust(text: str, test: bool) -> Iterator[Comment]:
    """Yield the comments of a Rust file; a module below ``#[cfg(test)]`` is test."""
    inside = ""
    end = ""
    gathered: list[str] = []
    kind = ""
    lines = [*text.splitlines(), ""]
    for at, line in enumerate(lines):
        bare = line.strip()
        found = re.match(r"(//[/!]?)(.*)", bare)
        if found and (not kind or found[1] == kind):
            kind = found[1]
            gathered.append(RUSTDOC_LINK.sub(r"\1", found[2].strip()))
            continue
        if gathered:
            item = inside
            if kind == "///":
                below = next(
                    (b for s in lines[at:] if (b := s.strip()) and not b.startswith(("#", "//"))), ""
                )
                named = ITEM.search(below) or MEMBER.match(below)
                item = named[1] if named else inside
            yield Comment(" ".join(gathered), "" if kind == "//!" else item, test, kind == "//!")
            gathered, kind = [], ""
        if found:
            kind = found[1]
            gathered.append(found[2].strip())
        elif re.match(r"#\[cfg\(.*\btest\b", bare) and "mod " in "".join(lines[at + 1 : at + 2]):
            if not test and lines[at + 1].rstrip().endswith("{"):
                test, end = True, line[: len(line) - len(line.lstrip())] + "}"
        elif end and line == end:
            test, end = False, ""
        elif named := re.search(r"\b(?:fn|struct|enum|impl|mod) (\w+)", bare):
            inside = named[1]


def trace(text: str) -> Iterator[Comment]:
    """Yield the comments of packet traces, each block of lines as one, with the trace's name as its item."""
    gathered: list[str] = []
    name = ""
    for line in [*text.splitlines(), ""]:
        if line.startswith("#"):
            gathered.append(line.removeprefix("#").strip())
        elif gathered:
            yield Comment(" ".join(gathered), name, test=True)
            gathered = []
        if line.startswith("== "):
            name = line.removeprefix("== ")


def steps(first: str, last: str | None) -> list[str]:
    """Spell out ``5.4–5.6``; only the last number of a section counts up."""
    if last is None:
        return [first]
    stem, _, low = first.rpartition(".")
    high = last.rpartition(".")[2]
    return [f"{stem}.{n}" if stem else str(n) for n in range(int(low), int(high) + 1)]


def laws_in(text: str, source: str) -> Iterator[tuple[str, int]]:
    """Yield each law a comment names, and where in the comment."""
    for token in TOKEN.finditer(text):
        if token["rfc"] or token["again"]:
            source = f"RFC {token['rfc'] or token['again']}"
        elif token["draft"] or token["paper"]:
            source = token["draft"] or token["paper"]
        elif source and token["section"]:
            yield from ((f"{source} §{s}", token.start()) for s in steps(token["section"], token["last"]))
        elif source and token["equation"]:
            yield from (
                (f"{source}, Eq. ({s})", token.start()) for s in steps(token["equation"], token["upto"])
            )


def first_source(text: str) -> str:
    """Return the first source a head note names."""
    found = re.search(SOURCE, text)
    return found[0] if found else ""


def sentence(text: str, at: int) -> tuple[str, bool]:
    """Return the sentence around a place, shortened; true if a law begins it, which is left out then."""
    ends = [m.end() for m in re.finditer(r"(?<!Eq)(?<!Fig)(?<!al)[.;](?= )", text)]
    begin = max((e for e in ends if e <= at), default=0)
    end = min((e for e in ends if e > at), default=len(text))
    said = text[begin:end].strip().rstrip(".;").replace("|", "\\|")
    # Links are for rustdoc: here only their text.
    said = re.sub(r"\[([^\]]*)\][\[(](?:super|crate|self)::[^\])]*[\])]", r"\1", said)
    law = re.match(rf"(?:{SOURCE})?,? ?(?:(?:{PART})|(?:{EQUATION}))[^:;,]{{0,40}}[:,] ", said)
    leads = law is not None and at < begin + 1 + len(law[0])
    said = said[law.end() :] if leads and law else said
    return (said if len(said) <= WIDTH else said[: said.rfind(" ", 0, WIDTH)] + " …"), leads


def says_something(said: str) -> bool:
    """Whether more is said than the law's name."""
    return len(re.sub(r"[\W\d_]+|RFC|Eq|steps?|and|to", "", said)) > 3


def collect(root: Path) -> dict[str, Law]:
    """Read every comment of the crates."""
    laws: dict[str, Law] = {}
    files = sorted(p for p in (root / CRATES).rglob("*") if p.suffix in {".rs", ".trace"})
    for path in files:
        name = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        is_test = "/tests/" in name or path.stem.endswith(("tests", "laws"))
        comments = list(trace(text) if path.suffix == ".trace" else rust(text, is_test))
        source = first_source(next((c.text for c in comments if c.head), ""))
        if not source and path.stem == "tests":
            above = path.parent.with_suffix(".rs")
            above = above if above.exists() else path.parent / "mod.rs"
            heads = [c.text for c in rust(above.read_text(encoding="utf-8"), test=False) if c.head]
            source = first_source(heads[0]) if heads else ""
        for comment in comments:
            for law, at in laws_in(comment.text, source):
                entry = laws.setdefault(law, Law())
                short = name.removeprefix("crates/").replace("/src/", "/")
                place = f"`{short}`" + (f" {comment.item}" if comment.item else "")
                if comment.test:
                    entry.tests[place] = None
                    continue
                entry.code[place] = None
                entry.strict |= name.startswith(STRICT)
                said, leads = sentence(comment.text, at)
                rank = 2 * comment.head + (not leads)
                if says_something(said):
                    entry.says.setdefault(rank, {})[said] = None
    return {law: entry for law, entry in laws.items() if entry.code}


def order(law: str) -> tuple[str, list[int]]:
    """Sort by source, then by number; sections before equations."""
    source, mark, part = re.split(r" (?=§)|, (?=Eq)", law)[0], "Eq." in law, law.rpartition("§")[2]
    number = [int(n) for n in re.findall(r"\d+", part if not mark else law.rpartition("Eq.")[2])]
    return source, [int(mark), *number]


def untested(laws: dict[str, Law]) -> list[str]:
    """Return TCP's laws that no test names."""
    return sorted((law for law, entry in laws.items() if entry.strict and not entry.tests), key=order)


def table(laws: dict[str, Law]) -> str:
    """Lay the laws out."""
    tcp = sum(entry.strict for entry in laws.values())
    elsewhere = sum(not entry.tests for entry in laws.values() if not entry.strict)
    lines = [
        "# Requirement, code, test",
        "",
        "Made by `make laws` from the comments that name a section or an equation; places are in `crates/`.",
        f"{len(laws)} laws, {tcp} of them TCP's, of which {len(untested(laws))} have no test that names them;"
        f" of the others {elsewhere}.",
        "A test not named here may still cover a law: the table knows only what comments say.",
        "Formats of headers (RFC 791, 1071, 1624, 4302, 8200, 9293) are tried with packets made by hand and",
        "at random, not section by section; RFC 3246 §2.2 asks something of who sets the rates.",
    ]
    source = ""
    for law in sorted(laws, key=order):
        if order(law)[0] != source:
            source = order(law)[0]
            lines += [
                "",
                f"## {source}",
                "",
                "| law | what the code says of it | code | tests |",
                "|---|---|---|---|",
            ]
        entry = laws[law]
        part = law.removeprefix(source).lstrip(", ")
        code, tests = "<br>".join(sorted(entry.code)), "<br>".join(sorted(entry.tests)) or "–"
        best = list(entry.says[min(entry.says)])[:SHOWN] if entry.says else []
        lines.append(f"| {part} | {'<br>'.join(best)} | {code} | {tests} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Write the table, or check it."""
    laws = collect(ROOT)
    text = table(laws)
    lines = faults = [f"{law}: code names it, no test does" for law in untested(laws)]
    if "--check" not in arguments:
        TABLE.parent.mkdir(exist_ok=True)
        TABLE.write_text(text, encoding="utf-8")
        lines = [*faults, f"the table: {TABLE.relative_to(ROOT)}"]
    sys.stdout.write("\n".join([*lines, text.splitlines()[3], ""]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
