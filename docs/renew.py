"""Copy into the package what a folder of reports has: atlases, verdicts (under today's TCP, too), advice.

python docs/renew.py reports
"""

from __future__ import annotations

import json
import shutil
import sys
from datetime import date
from pathlib import Path

from inprofile import papers
from inprofile.papers import advice, rerun, verdicts
from inprofile.run.storage import record_lines
from inprofile.studies.atlas.store import NAME
from inprofile.studies.compare.advice import COMMITTED

PICTURES = Path(__file__).parent / "images" / "papers"


def renew(reports: Path) -> list[str]:
    """Copy each paper's atlas and verdicts, and the advice of a whole comparison; what was copied.

    Results of a quick run or of one without --full, and a folder that has none, end it with a message.
    """
    copied = []
    for name in [*papers.names(), *papers.gallery()]:
        folder = papers.load(name).folder
        for file, what in ((NAME, "atlas"), (rerun.NAME, "today's TCP")):
            if (reports / name / file).exists():
                shutil.copyfile(reports / name / file, folder / file)
                copied.append(f"{name}: {what}")
        results = reports / name / "results.json"
        if results.exists():
            data = json.loads(results.read_text("utf-8"))
            if data.get("advice") and not data["quick"]:
                advice.write(folder, data)
                shutil.copyfile(reports / name / "advice.svg", PICTURES / f"{name}.svg")
                copied.append(f"{name}: figures of its advice")
            try:
                taken = verdicts.taken(data, date.today().isoformat())
            except ValueError as error:
                sys.exit(f"{results}: {error}")
            verdicts.write(taken, folder)
            copied.append(f"{name}: verdicts")
    results = reports / "compare" / "results.json"
    if results.exists():
        found = json.loads(results.read_text("utf-8"))
        if found["quick"]:
            sys.exit(f"{results} is of a quick comparison: run inprofile compare without --quick")
        COMMITTED.write_text(record_lines(found["advice"]), "utf-8")
        copied.append("compare: advice")
    if not copied:
        sys.exit(f"{reports} has no reports: run inprofile reproduce or inprofile compare first")
    return copied


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("which folder of reports? python docs/renew.py reports")
    for line in renew(Path(sys.argv[1])):
        sys.stdout.write(f"{line}\n")
