"""How long runs take, as it is said before, against how long they then take, on drawn experiments.

python validation/estimates.py [--cases 20] [--seed 1]

The papers' and the guides' experiments with a drawn TCP and duration. Both are seconds of one core, so that
what else the machine does counts little. Fails where one is wrong by more than a factor of two.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

from inprofile.experiment.scenario import Scenario, ScenarioError, load
from inprofile.metrics.quantity import in_seconds
from inprofile.run.pace import seconds

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(
    [*(ROOT / "python/inprofile/papers").glob("*/*.toml"), *(ROOT / "docs/guides").glob("*/*.toml")]
)
LEAST = 1.0
"""Seconds of one core from which on a case counts: what is shorter is not said."""
PACKETS = 1_500_000, 6_000_000
"""What a case is about as long as."""


def drawn(rng: random.Random) -> Scenario:
    """An experiment that nobody chose, long enough to count."""
    while True:
        try:
            base = load(rng.choice(FILES))
            changes: dict[str, object] = {"tcp.profile": rng.choice(["rfc", "linux", "linux"])}
            if rng.random() < 0.5:
                changes["tcp.congestion"] = rng.choice(["cubic", "sack"])
            one = base.with_(changes)
            factor = rng.uniform(*PACKETS) / one.expected_packets(seeds=1)
            end = f"{factor * in_seconds(one.check().effective['duration']):.3f} s"
            return one.with_({"duration": end, "measure.to": end})
        except (ScenarioError, ValueError):
            continue


def main() -> int:
    """A line a case; 1 where one is wrong by more than a factor of two."""
    asked = argparse.ArgumentParser(description="How long runs take, as it is said before.")
    asked.add_argument("--cases", type=int, default=20)
    asked.add_argument("--seed", type=int, default=1)
    given = asked.parse_args()
    rng, counted, wrong = random.Random(given.seed), 0, 0  # noqa: S311 (to draw cases)
    sys.stdout.write("said     took     ratio\n")
    while counted < given.cases:
        one = drawn(rng)
        said = seconds([(one, 1)])
        begun = time.process_time()
        one.run(seeds=1, jobs=1)
        took = time.process_time() - begun
        if took < LEAST:
            continue
        counted += 1
        wrong += not 0.5 <= said / took <= 2
        sys.stdout.write(f"{said:6.2f} s {took:6.2f} s  {said / took:5.2f}  {one.title}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{wrong} of {counted} are wrong by more than a factor of two\n")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
