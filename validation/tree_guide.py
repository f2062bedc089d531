"""The plan that the guide of access networks shows, made again and compared line by line.

python validation/tree_guide.py [--write]

Its experiment is the guide's, and so is what is compared. Some seven minutes of one core. Fails where a line
differs; --write puts what is found into the guide.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from inprofile.experiment.scenario import parse
from inprofile.studies.plan.tree.answer import as_text, fits
from inprofile.studies.plan.tree.network import network_of

GUIDE = Path(__file__).resolve().parents[1] / "docs/guides/tree.md"


def _block(text: str, language: str) -> re.Match[str]:
    found = re.search(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"{GUIDE} has no block {language}"  # noqa: S101
    return found


def main() -> int:
    """Make it; 1 where the guide says something else."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write", action="store_true")
    write = arguments.parse_args().write
    text = GUIDE.read_text("utf-8")
    answer = fits(network_of(parse(_block(text, "toml")[1], "isp.toml")))
    shown = _block(text, "text")
    found = as_text(answer) + "\n"
    if write:
        GUIDE.write_text(text[: shown.start(1)] + found + text[shown.end(1) :], "utf-8")
        return 0
    if found == shown[1]:
        sys.stdout.write(f"{GUIDE.name}: {len(answer.fits)} places and kinds as the guide says\n")
        return 0
    for line in sorted(set(found.splitlines()) ^ set(shown[1].splitlines())):
        sys.stderr.write(f"differs: {line}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
