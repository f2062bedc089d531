"""`inprofile diagnose` on captures of which it is known whether a policer made them.

python validation/policers.py [--policed 60] [--free 200] [--draw 7]

Drawn are rate, burst, round trips, senders (CUBIC, Reno, BBR), how many, and at which side of the limiter the
capture is. Where there is a policer, its rate has to be found within 1 % and its burst within 10 %; where the
packets that came leave a wider choice, the interval has to say so, and has to hold the truth. Where
there is none but a drop-tail queue, RED, CoDel, PIE, FQ-CoDel, or random loss, none may be invented: the rate
of false alarms is printed with its 95 % interval (Wilson). Exit code 1 where more than one in fifty is one,
or where fewer than seventeen of twenty policers are found.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from inprofile.experiment.scenario import Scenario
from inprofile.run.packets import write_capture
from inprofile.studies.diagnose import Diagnosis, Unreadable, of_capture
from inprofile.studies.diagnose.bucket import Fit

RIGHT, FALSE = 0.85, 0.02
RATE, BURST = 0.01, 0.1
VAGUE = 0.02
"""An interval wider than this share of the rate says that the rate cannot be told to 1 %."""

TEXT = """\
title = "A drawn case"
duration = "{duration:g} s"
measure = {{ from = "1 s", at = "{at}" }}

[tcp]
profile = "linux"
congestion = "{tcp}"

[[links]]
name = "access"
from = "customer"
to = "middle"
rate = "{access:g} Mbit/s"
delay = "0 ms"
queue = {{ aqm = "drop_tail", limit = "1000 packets" }}

[[links]]
name = "way"
from = "middle"
to = "far"
rate = "{link:g} Mbit/s"
delay = "1 ms"
queue = {queue}

[[links]]
name = "rest"
from = "far"
to = "server"
rate = "{access:g} Mbit/s"
delay = "1 ms"
queue = {{ aqm = "drop_tail", limit = "1000 packets" }}
{edge}
[[flows]]
name = "flow"
count = {flows}
from = "H*"
join = {{ node = "customer", rate = "1000 Mbit/s" }}
to = "server"
rtt = "{rtt}"
start = "uniform 0..1 s"
"""
POLICER = """
[[edges]]
node = "middle"
marker = {{ kind = "token_bucket", rate = "{rate:g} kbit/s", depth = "{burst} B", action = "drop" }}
"""
LOSS = """
[[edges]]
node = "middle"
marker = {{ kind = "blind_drop", p = {p:.5f} }}
"""


@dataclass(frozen=True)
class Case:
    """An experiment, and what is on its way."""

    text: str
    told: str
    rate: float | None = None
    """bit/s of the policer; None where there is none."""
    burst: float | None = None
    at: str = "access"


def drawn(draw: int, policed: bool) -> Iterator[Case]:
    """Cases, the same every time."""
    chance = random.Random(f"{draw} {policed}")  # noqa: S311 - what is drawn is no secret
    while True:
        yield _policed(chance) if policed else _free(chance)


def _way(chance: random.Random) -> dict[str, object]:
    low = chance.choice((5, 10, 20, 40, 80))
    return {
        "tcp": chance.choice(("cubic", "sack", "bbr")),
        "flows": chance.choice((1, 1, 2, 4)),
        "rtt": f"{low}..{low * chance.choice((1.0, 1.5, 2.0)):g} ms",
        "at": chance.choice(("access", "rest")),
        "duration": 20.0,
    }


def _policed(chance: random.Random) -> Case:
    way = _way(chance)
    rate = round(1e3 * 10 ** chance.uniform(0, 1.5))
    burst = max(
        3_000, round(125 * rate * chance.choice((0.01, 0.03, 0.1, 0.3, 1.0)) * chance.uniform(0.7, 1.4))
    )
    link = 1e-3 * rate * chance.choice((1.5, 3.0, 10.0))
    text = TEXT.format(
        **way,
        access=max(100.0, 3 * link),
        link=link,
        queue='{ aqm = "drop_tail", limit = "1000 packets" }',
        edge=POLICER.format(rate=rate, burst=burst),
    )
    at = str(way["at"])
    told = f"policer {rate} kbit/s {burst} B, {way['flows']} {way['tcp']} {way['rtt']}, {at}"
    return Case(text, told, 1e3 * rate, float(burst), at)


def _free(chance: random.Random) -> Case:
    way = _way(chance)
    rate = 10 ** chance.uniform(0, 1.5)
    limit = max(5, round(rate * 1e6 / 12_000 * chance.choice((0.01, 0.03, 0.1, 0.3))))
    kind = chance.choice(("drop_tail", "drop_tail", "red", "codel", "pie", "fq_codel", "loss", "loss"))
    edge = ""
    if kind == "loss":
        p = 10 ** chance.uniform(-3.3, -1.3)
        edge, queue = LOSS.format(p=p), '{ aqm = "drop_tail", limit = "1000 packets" }'
    elif kind == "red":
        low, high = max(2, 0.2 * limit), max(5, 0.6 * limit)
        thresholds = f'min_th = "{low:.0f} packets", max_th = "{high:.0f} packets", max_p = 0.1, w_q = 0.002'
        queue = f'{{ aqm = "red", limit = "{limit} packets", {thresholds} }}'
    else:
        queue = f'{{ aqm = "{kind}", limit = "{limit} packets" }}'
    text = TEXT.format(**way, access=max(100.0, 3 * rate), link=rate, queue=queue, edge=edge)
    told = f"{kind} {rate:.3g} Mbit/s {limit} packets, {way['flows']} {way['tcp']} {way['rtt']}, {way['at']}"
    return Case(text, told, at=str(way["at"]))


def look(case: Case, folder: Path) -> Diagnosis:
    """Seed 1, captured and diagnosed. Raises Unreadable for a capture with too few packets."""
    place = folder / "case.pcapng"
    write_capture(Scenario(case.text, "drawn.toml"), place, [case.at], snaplen=128)
    return of_capture(place)


def judged(case: Case, found: Diagnosis) -> str:
    """`right`, `wide` (an interval that holds the truth), `off`, `either`, `missed`; `clean`, `alarm`."""
    if case.rate is None or case.burst is None:
        return "alarm" if found.kind == "policer" else "clean"
    if found.kind not in ("policer", "either"):
        return "missed"
    rate = _judged(case.rate, found.rate, found.rates, RATE)
    worst = min(
        rate, _judged(case.burst, found.burst, found.bursts, BURST), key=("off", "wide", "right").index
    )
    return "either" if found.kind == "either" and worst != "off" else worst


def _judged(true: float, value: float | None, ends: tuple[float, float] | None, near: float) -> str:
    if value is not None and abs(value / true - 1) <= near:
        return "right"
    if ends is None:
        # It is said that it cannot be told.
        return "wide"
    return "wide" if ends[0] <= true <= ends[1] and ends[1] > ends[0] * (1 + VAGUE) else "off"


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share."""
    z, p = 1.96, hits / of
    middle, half = p + z * z / (2 * of), z * (p * (1 - p) / of + z * z / (4 * of * of)) ** 0.5
    return max(0.0, (middle - half) / (1 + z * z / of)), min(1.0, (middle + half) / (1 + z * z / of))


def _shown(bucket: Fit) -> str:
    return (
        f"bucket {bucket.rate / 1e6:.4g} Mbit/s {bucket.burst:.0f} B: {bucket.consistency:.2f},"
        f" {bucket.tolerant:.2f}, {bucket.dropped} losses, {bucket.episodes} episodes, gain {bucket.gain:.0f}"
    )


def run(cases: Iterator[Case], count: int, folder: Path) -> Counter[str]:
    """A row each of what is not as it should be, and how many of each outcome."""
    outcomes = Counter[str]()
    while outcomes.total() < count:
        case = next(cases)
        try:
            found = look(case, folder)
        except Unreadable:
            # Too few packets to be a capture that anybody would give.
            continue
        outcome = judged(case, found)
        outcomes[outcome] += 1
        if outcome not in ("right", "clean"):
            bucket, slope = found.fit, found.slope
            more = "" if bucket is None else f"; {_shown(bucket)}"
            more += "" if slope is None else f"; slope {slope.mean:.2f}, {slope.level:.2f}"
            sys.stdout.write(f"{outcome:7} {case.told}: {found.kind}{more}\n")
            sys.stdout.flush()
    return outcomes


def main() -> int:
    """Run the cases, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--policed", type=int, default=60, help="so many with a policer")
    parser.add_argument("--free", type=int, default=200, help="so many without")
    parser.add_argument("--draw", type=int, default=7, help="another draw")
    given = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        if given.policed:
            found = run(drawn(given.draw, True), given.policed, Path(folder))
            shown = ", ".join(f"{n} {outcome}" for outcome, n in found.most_common())
            sys.stdout.write(f"{given.policed} policers: {shown}\n")
            good &= found["right"] + found["wide"] >= RIGHT * given.policed
        if given.free:
            found = run(drawn(given.draw, False), given.free, Path(folder))
            lo, hi = (100 * end for end in wilson(found["alarm"], given.free))
            share = 100 * found["alarm"] / given.free
            sys.stdout.write(
                f"{given.free} without a policer: {found['alarm']} false alarms, {share:.1f} %"
                f" [{lo:.1f}, {hi:.1f}]\n"
            )
            good &= found["alarm"] <= FALSE * given.free
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
