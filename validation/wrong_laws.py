"""Show that tests hold the laws of the five papers: put a wrong law in place of each, and see a test fail.

python validation/wrong_laws.py [--only A1,B2] [--write docs/readings/wrong-laws.md]

The wrong laws are in wrong_laws.toml. They go into a copy of the tree below target, several at a time if they
are of different mechanisms: a build takes longer than the tests. A wrong law that no test notices, one that
does not compile, and a test that fails without any, end it with exit code 1.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAWS = Path(__file__).with_suffix(".toml")
SOURCE = Path("crates/core/src")
#: Seconds that building and testing one round may take.
TEST_TIMEOUT = 1800
#: On what other disciplines are built.
_BELOW = ("aqm/red/law.rs", "aqm/red/rio.rs")
_PAPERS = {
    "A": "Hur 2006: ARM, ARD",
    "B": "Kim 1999: RIO, RI+O",
    "C": "Neglia et al. 2003: probe marker",
    "D": "Hashemi et al. 2014: FDD-RED",
    "E": "Bouras and Sevasti 2004: TWAM, DWRED, TSW2CM",
}


@dataclass(frozen=True)
class Law:
    """A wrong law: what it says, and where it takes whose place."""

    id: str
    what: str
    file: str
    right: str
    wrong: str
    #: Prefix of the tests of which one has to fail.
    tests: str


def laws() -> list[Law]:
    """All of them, in the file's order.

    Raises `ValueError` for one whose right law is not in its file, or is there twice.
    """
    found = [Law(**entry) for entry in tomllib.loads(LAWS.read_text("utf-8"))["law"]]
    for law in found:
        times = (ROOT / SOURCE / law.file).read_text("utf-8").count(law.right)
        if times != 1:
            raise ValueError(
                f"{LAWS.name}: {law.id}: its right law occurs {times} times in {SOURCE / law.file}"
            )
        if law.right == law.wrong:
            raise ValueError(f"{LAWS.name}: {law.id}: its wrong law is the right one")
    return found


def rounds(found: Sequence[Law]) -> list[list[Law]]:
    """Wrong laws that can be tried together: it is clear which of them a failing test has noticed."""
    made: list[list[Law]] = []
    for law in found:
        place = next((r for r in made if not any(_meet(law, other) for other in r)), None)
        if place is None:
            made.append([law])
        else:
            place.append(law)
    return made


def _meet(a: Law, b: Law) -> bool:
    """Whether one's tests may notice the other: by shared tests, a shared file, or what is built on it."""
    shared = a.tests.startswith(b.tests) or b.tests.startswith(a.tests)
    pair = (a, b)
    below = any(law.file in _BELOW for law in pair) and all(law.tests.startswith("aqm::") for law in pair)
    return shared or below or a.file == b.file


def main(arguments: Sequence[str] | None = None) -> int:
    """Try them and print what noticed each; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", metavar="ID,…", help="these wrong laws only")
    parser.add_argument("--write", type=Path, metavar="FILE", help="also write the table, as Markdown")
    asked = parser.parse_args(arguments)
    found = laws()
    if asked.only:
        names = asked.only.split(",")
        if unknown := sorted(set(names) - {law.id for law in found}):
            parser.error(
                f"no such wrong law: {', '.join(unknown)}; there are {', '.join(x.id for x in found)}"
            )
        found = [law for law in found if law.id in names]
    tree = ROOT / "target" / "wrong-laws"
    _copy(tree)
    broken = _failing(tree, sorted({law.tests for law in found}))
    if broken:
        sys.stderr.write(f"these fail without any wrong law: {', '.join(broken)}\n")
        return 1
    noticed: dict[str, list[str]] = {}
    for law, tests in _tried(tree, rounds(found)):
        noticed[law.id] = tests
        said = f"{len(tests)} fail, {tests[0]} among them" if tests else "NOT NOTICED"
        sys.stdout.write(f"{law.id:4} {law.what}: {said}\n")
        sys.stdout.flush()
    missed = [law.id for law in found if not noticed[law.id]]
    if asked.write:
        asked.write.write_text(page(found, noticed), "utf-8")
    sys.stdout.write(f"{len(found) - len(missed)} of {len(found)} wrong laws are noticed\n")
    return 1 if missed else 0


def page(found: Sequence[Law], noticed: Mapping[str, Sequence[str]]) -> str:
    """The table as a page of the documentation."""
    lines = [
        "# Wrong laws, and the tests that notice them",
        "",
        "Each line is a law that a paper does not have, put in place of the one that it has;",
        "at least one test has to fail. `make wrong-laws` does it again, in minutes;",
        "`validation/wrong_laws.toml` has the lines of code. Tests are of `crates/core`;",
        "the first two that fail are named.",
    ]
    for paper, title in _PAPERS.items():
        own = [law for law in found if law.id.startswith(paper)]
        if own:
            lines += ["", f"## {title}", "", "| | wrong law | fail | among them |", "|---|---|---|---|"]
        for law in own:
            tests = noticed[law.id]
            named = "<br>".join(f"`{test}`" for test in tests[:2])
            lines.append(f"| {law.id} | {law.what} | {len(tests)} | {named} |")
    return "\n".join([*lines, ""])


def _copy(tree: Path) -> None:
    """The tree as it is, tracked files only, at their own places: what has not changed is not built again."""
    listed = subprocess.run(  # noqa: S603
        [_found("git"), "ls-files", "-z", "Cargo.toml", "Cargo.lock", "crates", "benches", "fuzz"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    shutil.rmtree(tree, ignore_errors=True)
    for name in filter(None, listed.stdout.split("\0")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)


def _tried(tree: Path, plan: Sequence[Sequence[Law]]) -> Iterator[tuple[Law, list[str]]]:
    for turn in plan:
        kept = {law.file: (tree / SOURCE / law.file).read_text("utf-8") for law in turn}
        for law in turn:
            (tree / SOURCE / law.file).write_text(kept[law.file].replace(law.right, law.wrong), "utf-8")
        failing = _failing(tree, [law.tests for law in turn])
        for law in turn:
            yield law, [test for test in failing if test.startswith(law.tests)]
        for file, text in kept.items():
            (tree / SOURCE / file).write_text(text, "utf-8")


def _found(command: str) -> str:
    """Its path. Ends the program where it is not installed."""
    return shutil.which(command) or sys.exit(f"{command} is missing: install it")


def _failing(tree: Path, tests: Sequence[str]) -> list[str]:
    """Names of the tests that fail, the laws' first. Ends the program where the tree does not compile."""
    target = os.environ.get("CARGO_TARGET_DIR", str(ROOT / "target"))
    done = subprocess.run(  # noqa: S603
        [_found("cargo"), "test", "--locked", "-p", "inprofile-core", "--lib", "--", *tests],
        cwd=tree, capture_output=True, text=True, timeout=TEST_TIMEOUT, check=False,
        env={**os.environ, "CARGO_TARGET_DIR": target, "PROPTEST_FAILURE_PERSISTENCE": "off"},
    )  # fmt: skip
    if "test result:" not in done.stdout:
        sys.exit(f"the tests did not run:\n{done.stderr[-4000:]}")
    failed = set(re.findall(r"^test (\S+) \.\.\. FAILED$", done.stdout, re.M))
    return sorted(failed, key=lambda name: ("::laws::" not in name, name))


if __name__ == "__main__":
    sys.exit(main())
