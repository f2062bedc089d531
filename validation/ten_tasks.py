"""Ten things that somebody new does on the first day, each with the commands it takes, timed.

    python validation/ten_tasks.py                     # as it is installed
    python validation/ten_tasks.py --write             # and write docs/ten-tasks.md
    python validation/ten_tasks.py --inprofile OLD/.venv/bin/inprofile --before 2c028b6

`--before` times an older version in what it could do, and keeps the times for the page's column. Everything
happens in a new folder. A task is done when every command ends as it should and leaves what it is about.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "ten-tasks.md"
KEPT = ROOT / "docs" / "ten-tasks.json"

LINK = """\
title = "My link: 16 customers share 10 Mbit/s"
duration = "20 s"
measure = { from = "5 s" }
seeds = 5

[[links]]
name = "uplink"
from = "edge"
to = "core"
rate = "10 Mbit/s"
delay = "5 ms"
[links.queue]
aqm = "rio"
limit = "120 packets"
in = { min_th = "60 packets", max_th = "100 packets", max_p = 0.02 }
out = { min_th = "15 packets", max_th = "50 packets", max_p = 0.1 }

[[flows]]
name = "customer"
count = 8
from = "H*"
join = { node = "edge", rate = "100 Mbit/s" }
to = "core"
rtt = "20..60 ms"
start = "uniform 0..2 s"
contract = "500 kbit/s"
marker = { kind = "token_bucket", depth = "20 packets" }

[[flows]]
name = "others"
count = 8
from = "H*"
join = { node = "edge", rate = "100 Mbit/s" }
to = "core"
rtt = "20..60 ms"
start = "uniform 0..2 s"
marker = { kind = "colour", colour = "out" }
"""

MARKER = '''\
"""Every n-th packet leaves as OUT."""
import inprofile


class NthOut(inprofile.Marker):
    """Every n-th packet OUT."""

    n: int = inprofile.parameter(100, least=1, doc="One packet in so many is OUT.")

    def setup(self):
        self.count = 0

    def mark(self, now, packet, rng):
        self.count += 1
        return "out" if self.count % self.n == 0 else "in"
'''

SCHEME = """\
[[schemes]]
id = "mine"
title = "My WRED"
text = "A curve per colour, green late."
needs = "contracts"
flows = { kind = "token_bucket", depth = "300 ms of contract" }
[schemes.queue]
aqm = "wred"
limit = "4 T"
green = { min_th = "2 T", max_th = "3 T", max_p = 0.02 }
yellow = { min_th = "0.5 T", max_th = "1 T", max_p = 0.1 }
"""


@dataclass(frozen=True)
class Task:
    """What somebody wants, the commands, and what must be there then."""

    wish: str
    commands: tuple[str, ...]
    left: Callable[[Path, str], bool]
    """Whether it is done, by the folder and what the last command printed."""
    before: str | None = None
    """Why the version before could not do it; None where the same commands did."""


@dataclass(frozen=True)
class Took:
    """What a task took."""

    wish: str
    commands: tuple[str, ...]
    wall: float | None
    """Seconds by the clock; None where it was not possible."""
    cpu: float | None
    """Seconds of processors."""


def tasks() -> list[Task]:
    """In the order of a first day."""

    def json_of(said: str) -> dict[str, Any]:
        return dict(json.loads(said))

    return [
        Task(
            "run an experiment that comes with it",
            ("inprofile new first", "inprofile run first.toml --out first"),
            lambda place, said: (place / "first" / "flows.parquet").exists() and "goodput" in said,
        ),
        Task(
            "run my own link",
            ("inprofile check link.toml", "inprofile run link.toml --out link"),
            lambda place, said: (place / "link" / "flows.parquet").exists() and "customer" in said,
        ),
        Task(
            "read whether contracts are kept",
            ("inprofile run link.toml --seeds 2 --json",),
            lambda _, said: json_of(said)["contracts"]["experiment"] is not None,
            before="by a script of one's own, from rates and contracts",
        ),
        Task(
            "change a threshold",
            ('inprofile run link.toml --set links.uplink.queue.out.max_th="30 packets"',),
            lambda _, said: "uplink" in said,
        ),
        Task(
            "sweep it, and draw the sweep",
            (
                "inprofile sweep link.toml --seeds 3 --out sweep --plot"
                ' --axis links.uplink.queue.out.max_th="20 packets,50 packets,100 packets"',
            ),
            lambda place, _: any((place / "sweep").glob("*.svg")),
            before="a loop in the shell, and a script that draws",
        ),
        Task(
            "find settings that keep every contract",
            ("inprofile plan link.toml --schemes rio --trials 4 --out plan",),
            lambda place, _: (place / "plan" / "best.toml").exists(),
            before="by trial",
        ),
        Task(
            "compare with a scheme of my own",
            ("inprofile compare link.toml --schemes rio,mine.toml --quick --out compare",),
            lambda place, _: any((place / "compare").rglob("*.html")),
            before="the built-in schemes only",
        ),
        Task(
            "use a marker of my own, in Python",
            (
                "inprofile run link.toml --mechanism marker.py --seeds 1"
                " --set flows.customer.marker='{ kind = \"nth_out\", n = 10 }'",
            ),
            lambda _, said: "customer" in said,
            before="in Rust, with everything rebuilt",
        ),
        Task(
            "look at it in the browser",
            ("inprofile view .",),
            lambda _, said: "<html" in said.lower(),
            before="there was no page",
        ),
        Task(
            "hand it on: CSV, packets for Wireshark, one HTML file",
            (
                "inprofile export link --csv tables",
                "inprofile run link.toml --seeds 1 --pcap link.pcapng --snaplen 96",
                "inprofile view . --export page.html",
            ),
            lambda place, _: all((place / name).exists() for name in ("tables", "link.pcapng", "page.html")),
            before="Parquet only",
        ),
    ]


def viewed(command: str, place: Path, environment: dict[str, str]) -> str:
    """Start the page's server, load its page once, and end it."""
    process = subprocess.Popen(  # noqa: S602
        f"exec {command}", shell=True, cwd=place, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        for line in process.stdout or ():
            address = next((word for word in line.split() if word.startswith("http://")), None)
            if address is not None:
                opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
                return str(opener.open(address, timeout=30).read().decode())
        return ""
    finally:
        process.terminate()
        process.wait(timeout=30)


def perform(task: Task, place: Path, environment: dict[str, str]) -> tuple[Took, str | None]:
    """What it took, and what went wrong."""
    began, before, said = time.monotonic(), cpu_seconds(), ""

    def took() -> Took:
        return Took(task.wish, task.commands, time.monotonic() - began, cpu_seconds() - before)

    for command in task.commands:
        if command.startswith("inprofile view") and "--export" not in command:
            said = viewed(command, place, environment)
            continue
        done = subprocess.run(  # noqa: S602
            command, shell=True, cwd=place, env=environment, capture_output=True, text=True, check=False
        )
        # 1: it ran, and a check fell short, which is an answer too.
        if done.returncode not in (0, 1):
            return took(), f"{command}: {done.stderr.strip() or done.stdout.strip()}"
        said = done.stdout
    if task.left(place, said):
        return took(), None
    return took(), f"{task.commands[-1]}: left nothing of what was asked:\n{said[-500:]}"


def cpu_seconds() -> float:
    """Of all programs that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Perform all tasks; 1 where one cannot be done."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inprofile", type=Path, help="the program, where it is not beside this Python")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument("--before", metavar="COMMIT", help="an older version: keep its times for the page")
    given = parser.parse_args()
    program = given.inprofile or Path(sys.executable).with_name("inprofile")
    if not program.exists():
        parser.error(f"{program} is not there: make build, or give --inprofile")
    rows: list[Took] = []
    failed = 0
    with tempfile.TemporaryDirectory(prefix="inprofile-tasks-") as name:
        place = Path(name)
        programs = place / "bin"
        programs.mkdir()
        (programs / "inprofile").symlink_to(program.absolute())
        for file, text in (("link.toml", LINK), ("marker.py", MARKER), ("mine.toml", SCHEME)):
            (place / file).write_text(text, encoding="utf-8")
        environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "COLUMNS": "100"}
        for task in tasks():
            if given.before and task.before is not None:
                rows.append(Took(task.wish, (), None, None))
                continue
            took, wrong = perform(task, place, environment)
            text = f"{took.wall:7.1f} s  {took.cpu:7.1f} CPU s  {task.wish}"
            sys.stdout.write(text + ("" if wrong is None else f"\n           {wrong}") + "\n")
            sys.stdout.flush()
            failed += wrong is not None
            rows.append(took)
    if not failed and (given.write or given.before):
        kept = json.loads(KEPT.read_text("utf-8")) if KEPT.exists() else {}
        kept["before" if given.before else "now"] = [asdict(row) for row in rows]
        if given.before:
            kept["commit"] = given.before
        else:
            kept["machine"] = [platform.machine(), os.cpu_count(), platform.python_version()]
        KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        if "now" in kept:
            PAGE.write_text(page(kept), encoding="utf-8")
    return 1 if failed else 0


def page(kept: dict[str, Any]) -> str:
    """The table for the documentation."""
    machine, cores, python = kept["machine"]
    lines = [
        "# Ten tasks of a first day",
        "",
        "What a new user does with a link and its sixteen customers: the commands, and how long they take",
        f"({machine}, {cores} cores, Python {python}; other programs were running, so CPU seconds",
        "tell more than wall-clock seconds). Files written by hand: the experiment (37 lines), a marker in",
        "Python (15), a scheme (11). *Before* is the version before sweeps, plans, contracts and the page"
        + (f" (commit {kept['commit']})." if "commit" in kept else "."),
        "`python validation/ten_tasks.py --write` repeats it.",
        "",
        "| task | commands | s | CPU s | before, CPU s |",
        "|---|---|---|---|---|",
    ]
    before = {row["wish"]: row for row in kept.get("before", [])}
    reasons = {task.wish: task.before for task in tasks()}
    for row in kept["now"]:
        shown = "<br>".join(f"`{c}`".replace("|", "\\|") for c in row["commands"])
        old = before.get(row["wish"], {}).get("cpu")
        reason = reasons[row["wish"]]
        then = f"not possible: {reason}" if reason else "–" if old is None else f"{old:.1f}"
        lines.append(f"| {row['wish']} | {shown} | {row['wall']:.1f} | {row['cpu']:.1f} | {then} |")
    wall, cpu = (sum(row[k] for row in kept["now"]) for k in ("wall", "cpu"))
    count = sum(len(row["commands"]) for row in kept["now"])
    lines.append(f"| together | {count} commands | {wall:.1f} | {cpu:.1f} | |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
