"""The three worked plans of docs/guides/plan, made and put to what they are for; the papers' lines for tc.

    python validation/plans.py                 # as part of make validate-linux
    python validation/plans.py --live 2        # and the promise between namespaces, so many runs (as root)
    python validation/plans.py --only isp
    python validation/plans.py --go-on         # with what is in target/plans of the same build

`inprofiled check` reads each router's file; a Linux that boots as a process (`uml.py`) loads each `police.tc`
with `tc -batch`, each `tc.sh` and what each paper's page pastes, and shows what it has then, filter by
filter. Plans are made anew in target/plans. Leaves with 1 if anything is refused, or a promise is not kept.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uml import ROOT, TARGET, LinuxMissing, boot, first_process, program

from inprofile import papers
from inprofile.papers import advice

PLANS = ROOT / "docs" / "guides" / "plan"
PLACE = TARGET / "plans"
MODULES = (
    "veth sch_ingress sch_tbf sch_prio sch_drr sch_red sch_gred sch_codel sch_fq_codel sch_pie"
    " cls_flower cls_matchall cls_u32 act_police act_pedit act_csum"
)


@dataclass(frozen=True)
class Case:
    """A worked plan."""

    name: str
    title: str
    trials: int


CASES = (
    Case("isp", "an ISP's 30 customers", 24),
    Case("university", "a university's two classes", 8),
    Case("pppoe", "200 customers with PPPoE policers", 4),
)


WARNED = re.compile(r"GRED: WARNING\. Burst \d+ seems to be too large\.\n?")
"""The warning of `tc` about any w_q of 2^-10 or less, which it accepts; `tc.sh` notes it."""


@dataclass(frozen=True)
class Loaded:
    """The guest's answer to a plan's lines."""

    filters: int
    """That it has after `tc -batch police.tc`."""
    buckets: Counter[tuple[int, int]]
    """Its policers, by rate in bit/s and burst in bytes."""
    complaints: str
    """The messages of `tc` about either file but for WARNED; none where it took every line."""
    exponents: set[int]
    """Of its gred queues: n of w_q = 2^-n."""
    below: str
    """Its queues, classes and filters at the output, as `tc` shows them."""


def script(folder: Path, cases: Sequence[tuple[str, Path]]) -> str:
    """The guest's first and only process: each case's files, by name and folder."""
    lines: list[str] = []
    for name, files in cases:
        ports = "lan0 wan0"
        made = f"for p in {ports}; do ip link add $p type veth peer name $p-far; ip link set $p up; done"
        gone = f"for p in {ports}; do ip link del $p; done"
        lines += [
            made,
            f": > {name}.said",
            # A plan has none where no chain of policers is its markers.
            f"[ ! -e {files}/police.tc ] || tc -batch {files}/police.tc >> {name}.said 2>&1"
            f" || echo refused >> {name}.said",
            f"for p in {ports}; do tc filter show dev $p ingress; done > {name}.filters",
            gone,
            # Its policers are in the way of those of police.tc.
            made,
            f"sh -e {files}/tc.sh >> {name}.said 2>&1 || echo refused >> {name}.said",
            f"for p in {ports}; do tc -s -d qdisc show dev $p; done > {name}.qdiscs",
            f"{{ tc class show dev wan0; tc filter show dev wan0 parent 2:; }} >> {name}.qdiscs",
            gone,
        ]
    return first_process(folder, MODULES.split(), lines)


def policers(said: str) -> Counter[tuple[int, int]]:
    """The token buckets in what `tc filter show` prints, or in lines for it.

    >>> policers("action order 1:  police 0x1 rate 600Kbit burst 18750b mtu 65535b action drop")
    Counter({(600000, 18750): 1})
    >>> policers("action police rate 600000bit burst 18750 mtu 65535 conform-exceed drop")
    Counter({(600000, 18750): 1})
    """
    found = re.findall(r"police\b.*? rate (\d+)([KMG]?)bit burst (\d+)([KM]?)b?\b", said)
    tens = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}
    twos = {"": 1, "K": 2**10, "M": 2**20}
    return Counter((int(rate) * tens[unit], int(burst) * twos[more]) for rate, unit, burst, more in found)


def load(cases: Sequence[tuple[str, Path]]) -> tuple[str, dict[str, Loaded]]:
    """Boot and load; the kernel's version, and what became of each case.

    Raises LinuxMissing, or RuntimeError where the guest did not come so far.
    """
    kernel = program()
    with tempfile.TemporaryDirectory(prefix="inprofile-plans-") as made:
        folder = Path(made)
        said = boot(kernel, folder, script(folder, cases), 10.0)
        found = {}
        for name, _ in cases:
            shown = folder / f"{name}.qdiscs"
            if not shown.exists():
                raise RuntimeError(f"{name} was not loaded in the guest, which said:\n{said}")
            filters = (folder / f"{name}.filters").read_text("utf-8")
            complaints = (folder / f"{name}.said").read_text("utf-8").strip()
            found[name] = loaded(filters, complaints, shown.read_text("utf-8"))
        return (folder / "version").read_text("utf-8").strip(), found


def loaded(filters: str, complaints: str, qdiscs: str) -> Loaded:
    """From what `tc filter show` and `tc -d qdisc show` print, and what `tc` complained of."""
    return Loaded(
        len(re.findall(r" handle 0x\w+", filters)),
        policers(filters),
        WARNED.sub("", complaints).strip(),
        {int(n) for n in re.findall(r"\bewma (\d+)", qdiscs)},
        qdiscs,
    )


def differences(batch: str, queues: str, there: Loaded) -> list[str]:
    """The settings that the kernel has otherwise than the lines."""
    wrong = [there.complaints] if there.complaints else []
    lines = batch.count("filter add")
    if there.filters != lines:
        wrong.append(f"{lines} filters were asked for, and there are {there.filters}")
    asked, have = (sorted(buckets.elements()) for buckets in (policers(batch), there.buckets))
    # The kernel keeps a burst as time, in ticks of 64 ns.
    same = [a[0] == b[0] and 0 <= a[1] - b[1] <= 1 for a, b in zip(asked, have, strict=False)]
    if len(asked) != len(have) or not all(same):
        wrong.append(f"policers that were asked for: {asked}, and that are there: {have}")
    rounded = {int(n) for n in re.findall(r"\bw_q: .* became 2\^-(\d+)", queues)}
    if not rounded <= there.exponents:
        wrong.append(
            f"w_q that was asked for: 2^-{sorted(rounded)}, and that is there: 2^-{sorted(there.exponents)}"
        )
    return wrong


def pasted() -> dict[str, str]:
    """The lines for tc on the papers' pages, by the paper's name."""
    found = {}
    for name in papers.names():
        about = advice.committed(papers.load(name))
        lines = (
            [p["text"] for p in about[0].get("pastes", ()) if p["title"].startswith("tc,")] if about else []
        )
        if lines:
            found[name] = "".join(lines)
    return found


def missing(lines: str, there: Loaded) -> list[str]:
    """What the lines ask for and the kernel does not have: queues and classes by kind, filters by class."""
    wrong = [there.complaints] if there.complaints else []
    for line in filter(None, (part.partition("#")[0].strip() for part in lines.splitlines())):
        if queue := re.match(r"tc qdisc replace .*\b(root|parent \S+)(?: handle (\S+))? (\w+)", line):
            shown = rf"^qdisc {queue[3]} {queue[2] or '[0-9a-f]+:'} {queue[1]} "
        elif kind := re.match(r"tc class replace .*\bclassid (\S+) (\w+)", line):
            shown = rf"^class {kind[2]} {kind[1]} "
        elif to := re.match(r"tc filter replace .*\bflowid (\S+)$", line):
            shown = rf"\bflowid {to[1]}\b"
        else:
            shown = "(?!)"
        if not re.search(shown, there.below, re.MULTILINE):
            wrong.append(f"not there: {line}")
    return wrong


def made(case: Case, inprofile: Path, environment: dict[str, str]) -> dict[str, Any]:
    """Plan it; the answer."""
    out = PLACE / case.name
    command = [str(inprofile), "plan", str(PLANS / f"{case.name}.toml"), "--out", str(out), "--yes"]
    command += ["--trials", str(case.trials), "--json"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)  # noqa: S603
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{case.name}: inprofile plan left with {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def live(case: Case, inprofile: Path, seeds: int) -> tuple[str, bool]:
    """The promise between namespaces; in words, and whether every contract was kept."""
    command = [str(inprofile), "live", str(PLACE / case.name / "best.toml"), "--seeds", str(seeds), "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    found = json.loads(done.stdout)
    whole = found["contracts"]["experiment"]
    kept, worst = whole["runs_all_kept"], whole["worst"]
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    said = (
        f"live, every contract kept in {kept['kept']} of {kept['of']}; least ratio"
        f" {worst['assurance_ratio']:.3f} ({worst['flow']}); load {load}"
    )
    return said, bool(kept["kept"] == kept["of"])


def summary(case: Case, answer: dict[str, Any]) -> tuple[str, bool]:
    """The plan in a line, and whether it was met."""
    chosen = answer["chosen"]
    goal = f"{100 * answer['goal']['kept']:g} %"
    if chosen is None:
        near = answer["nearest"]
        return (
            f"{case.title}: {goal} not met; {near['title']} falls short by {near['falls_short_by']:.3f}",
            False,
        )
    fresh = chosen["fresh"]
    settings = ", ".join(f"{key} {value:g}" for key, value in chosen["settings"].items())
    return (
        f"{case.title}: {chosen['title']} ({settings}); kept in {fresh['runs_all_kept']} of {fresh['runs']}"
        f" fresh runs, at least {100 * fresh['lower_bound']:.2f} % (goal {goal}); {answer['runs']:,} runs",
        True,
    )


def main() -> int:
    """Plan, check, load, tell on the way."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=[case.name for case in CASES])
    parser.add_argument(
        "--live", type=int, default=0, metavar="N", help="also N runs of each between namespaces"
    )
    parser.add_argument("--go-on", action="store_true", help="take the runs of an earlier call")
    given = parser.parse_args()
    chosen = [case for case in CASES if not given.only or case.name in given.only]
    inprofile = Path(sys.executable).with_name("inprofile")
    subprocess.run(["cargo", "build", "--quiet", "--locked", "-p", "inprofile-router"], cwd=ROOT, check=True)  # noqa: S607
    router = TARGET / "debug" / "inprofiled"
    environment = {**os.environ, "PATH": f"{router.parent}:{os.environ['PATH']}"}
    good = True
    for case in chosen:
        if not given.go_on:
            shutil.rmtree(PLACE / case.name, ignore_errors=True)
        said, met = summary(case, made(case, inprofile, environment))
        tell(said)
        file = PLACE / case.name / "inprofiled.toml"
        line = [str(router), "check", str(file)]
        checked = subprocess.run(line, capture_output=True, text=True, check=False)  # noqa: S603
        said = "accepted" if checked.returncode == 0 else f"refused: {checked.stderr.strip()}"
        tell(f"  inprofiled check: {said}")
        good = good and met and checked.returncode == 0
    pastes = {} if given.only else pasted()
    for name, lines in pastes.items():
        (PLACE / name).mkdir(parents=True, exist_ok=True)
        (PLACE / name / "tc.sh").write_text(lines, "utf-8")
    try:
        kernel, found = load([(name, PLACE / name) for name in (*(case.name for case in chosen), *pastes)])
    except LinuxMissing as error:
        sys.stderr.write(f"{error}\n")
        return 2
    for case in chosen:
        there = found[case.name]
        filters, queues = PLACE / case.name / "police.tc", (PLACE / case.name / "tc.sh").read_text("utf-8")
        batch = filters.read_text("utf-8") if filters.exists() else ""
        wrong = differences(batch, queues, there)
        tell(
            f"{case.title}: Linux {kernel} has "
            + (
                f"{there.filters} filters of police.tc with {there.buckets.total()} policers; "
                if batch
                else "the queues of tc.sh (no chain of policers is this plan's markers); "
            )
            + ("; ".join(wrong) or "every line was taken")
        )
        good = good and not wrong
    for name, lines in pastes.items():
        wrong = missing(lines, found[name])
        tell(f"What {name}'s page pastes for tc: " + ("; ".join(wrong) or f"Linux {kernel} took every line"))
        good = good and not wrong
    for case in chosen if given.live else ():
        said, kept = live(case, inprofile, given.live)
        tell(f"{case.title}: {said}")
        good = good and kept
    return 0 if good else 1


def tell(what: str) -> None:
    """A line of progress."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
