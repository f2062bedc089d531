"""Runs drawn experiments here and in ns-2, event by event, and counts by kind what came of it.

    python validation/random_runs.py                      seeds 1 to 2000
    python validation/random_runs.py --first 77 --runs 1  one of them again
    python validation/random_runs.py --fresh --runs 500   seeds that nobody has seen

What differs is written to `target/diverged`, with the command that shows it again; with any such the program
leaves with 1.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from drawn import QUEUES, Drawn, draw

from inprofile import Scenario, parse
from inprofile.run.pool import threads
from inprofile.studies.validate import (
    OURS,
    THEIRS,
    NotInNs2,
    Ns2Failed,
    Ns2Late,
    Ns2Missing,
    compare,
    validate,
)

ROOT = Path(__file__).parent.parent
DIVERGED = ROOT / "target" / "diverged"
RUNS = 2000
"""Of seeds 1 to this many `make validate` runs the experiments."""
TIMEOUT = 120.0
"""Seconds for one run of ns-2; most take a tenth of one."""

IDENTICAL, DIED, REFUSED, LATE, OPEN = "identical", "division by zero", "refused", "late", "diverged"
OUTCOMES = {
    IDENTICAL: "every event is the same",
    DIED: "ns-2 divided by zero and was ended: events are the same up to there, and dsRED here counted it",
    REFUSED: "ns-2 has no word for something in it",
    LATE: f"ns-2 had not come to its end in {TIMEOUT:g} s",
    OPEN: "the events differ, or ns-2 failed otherwise",
}
"""The possible outcomes of a run; all but the last are accounted for."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a seed."""

    seed: int
    queue: str
    traits: tuple[str, ...]
    word: str
    """Of [`OUTCOMES`]."""
    events: int
    packets: int
    why: str
    """For anything but identity: what was refused, or where it differs."""


def run(seed: int) -> Outcome:
    """One seed, here and in ns-2."""
    drawn = draw(seed)
    scenario = parse(drawn.text, f"drawn-{seed}.toml")
    traits = (*drawn.traits, *timeouts(scenario))

    def outcome(word: str, events: int = 0, packets: int = 0, why: str = "") -> Outcome:
        return Outcome(seed, drawn.queue, traits, word, events, packets, why)

    with tempfile.TemporaryDirectory(prefix="inprofile-") as name:
        folder = Path(name)
        try:
            found = validate(scenario, keep=folder, timeout=TIMEOUT)
        except NotInNs2 as error:
            return outcome(REFUSED, why="; ".join(error.missing))
        except Ns2Late as error:
            return outcome(LATE, why=str(error))
        except Ns2Failed as error:
            events, differs = up_to_its_end(scenario, folder)
            if error.code == -signal.SIGFPE and not differs and divisions(scenario):
                return outcome(DIED, events)
            return diverged(drawn, outcome(OPEN, events, why=f"{error}\n{differs}"))
    comparison = found.comparison
    if comparison.divergence is None:
        return outcome(IDENTICAL, comparison.events, found.packets)
    return diverged(drawn, outcome(OPEN, comparison.events, found.packets, str(comparison.divergence)))


def timeouts(scenario: Scenario) -> list[str]:
    """How many timeouts our run has, in words."""
    n = sum(row["timeouts"] for row in scenario.run(seeds=[1]).flows.to_pylist())
    return ["10 timeouts or more"] if n >= 10 else ["1 to 9 timeouts"] if n else []


def divisions(scenario: Scenario) -> int:
    """How often dsRED here would have divided by zero."""
    queues = scenario.run(seeds=[1]).queues.to_pylist()
    return sum(json.loads(row["stats"] or "{}").get("division_by_zero", 0) for row in queues)


def up_to_its_end(scenario: Scenario, folder: Path) -> tuple[int, str]:
    """The comparable part of a failed ns-2's trace: events that are the same, and where the rest differs."""
    from inprofile import _internal

    theirs = (folder / THEIRS).read_bytes() if (folder / THEIRS).exists() else b""
    whole = theirs[: theirs.rfind(b"\n") + 1].splitlines(keepends=True)
    _internal.ns2_log(scenario._inner, 1, str(folder / OURS))
    with (folder / OURS).open("rb") as ours:
        comparison = compare(islice(ours, len(whole)), whole)
    return comparison.events, "" if comparison.divergence is None else str(comparison.divergence)


def diverged(drawn: Drawn, outcome: Outcome) -> Outcome:
    """Keeps the experiment."""
    DIVERGED.mkdir(parents=True, exist_ok=True)
    (DIVERGED / f"drawn-{drawn.seed}.toml").write_text(drawn.text, encoding="utf-8")
    return outcome


def told(outcome: Outcome) -> str:
    """The cases to look at, and how to see them again."""
    file = (DIVERGED / f"drawn-{outcome.seed}.toml").relative_to(ROOT)
    what = f"seed {outcome.seed} ({QUEUES[outcome.queue]}): {outcome.why}"
    return f"{what}\nagain: inprofile validate {file} --seed 1"


@dataclass(frozen=True)
class Tally:
    """The outcome of all of them."""

    first: int
    outcomes: tuple[Outcome, ...]

    @property
    def accounted(self) -> bool:
        """Whether nothing differs without a reason."""
        return all(outcome.word != OPEN for outcome in self.outcomes)

    def counts(self, outcomes: Iterable[Outcome]) -> dict[str, int]:
        """By outcome, with events and packets."""
        outcomes = list(outcomes)
        words = Counter(outcome.word for outcome in outcomes)
        return {
            "runs": len(outcomes),
            **{word: words[word] for word in OUTCOMES},
            "events": sum(outcome.events for outcome in outcomes),
            "packets": sum(outcome.packets for outcome in outcomes),
        }

    def kinds(self) -> dict[str, dict[str, int]]:
        """The counts of each kind, then of each trait."""
        found = {
            name: self.counts(o for o in self.outcomes if o.queue == queue) for queue, name in QUEUES.items()
        }
        for trait in sorted({trait for outcome in self.outcomes for trait in outcome.traits}):
            found[trait] = self.counts(o for o in self.outcomes if trait in o.traits)
        return found

    def refusals(self) -> dict[str, int]:
        """The refusals and their numbers: the text after the place."""
        said = Counter[str]()
        for outcome in self.outcomes:
            if outcome.word == REFUSED:
                said.update({what.partition(": ")[2] for what in outcome.why.split("; ")})
        return dict(said.most_common())

    def to_json(self) -> dict[str, Any]:
        """As docs/validation.json has it."""
        return {
            "seeds": [self.first, self.first + len(self.outcomes) - 1],
            "outcomes": OUTCOMES,
            "all": self.counts(self.outcomes),
            "kinds": self.kinds(),
            "refused": self.refusals(),
            "diverged": [
                {"seed": o.seed, "kind": QUEUES[o.queue], "why": o.why}
                for o in self.outcomes
                if o.word == OPEN
            ],
        }


def table(found: dict[str, Any]) -> str:
    """A row a kind, of what [`Tally.to_json`] says."""
    rows = [
        "| | runs | identical | ns-2 died | refused | late | diverged | events compared |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, n in [*found["kinds"].items(), ("**all**", found["all"])]:
        cells = [name, *(f"{n[key]:,}" for key in ("runs", *OUTCOMES, "events"))]
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def section(found: dict[str, Any]) -> str:
    """For the page: what came of them, and by kind."""
    n, (first, last) = found["all"], found["seeds"]
    said = [f"{n[word]:,} {OUTCOMES[word]}" for word in (DIED, REFUSED, LATE, OPEN) if n[word]]
    refused = ", ".join(f"{what} ({times})" for what, times in found["refused"].items())
    text = (
        f"Of {n['runs']:,} experiments drawn from seeds {first} to {last}, "
        f"{n[IDENTICAL]:,} are identical, {n['events']:,} events in all"
    )
    text += "".join(f"; in {what}" for what in said) + "."
    if refused:
        text += f" Refused: {refused}."
    return f"{text}\n\n{table(found)}"


def tally(first: int, runs: int) -> Tally:
    """These seeds, on all cores."""
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(threads(None)) as pool:
        for outcome in pool.map(run, range(first, first + runs), chunksize=8):
            outcomes.append(outcome)
            if outcome.word == OPEN:
                sys.stderr.write(told(outcome) + "\n")
    return Tally(first, tuple(outcomes))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, show the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--runs", type=int, default=RUNS, help="how many seeds")
    parser.add_argument("--fresh", action="store_true", help="begin with a seed of chance")
    parser.add_argument("--json", action="store_true", help="print counts as JSON")
    options = parser.parse_args(arguments)
    first = random.SystemRandom().randrange(10**6, 10**9) if options.fresh else options.first
    began = time.monotonic()
    try:
        found = tally(first, options.runs)
    except Ns2Missing as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(
        (json.dumps(found.to_json(), indent=2) if options.json else table(found.to_json())) + "\n"
    )
    took = time.monotonic() - began
    sys.stderr.write(f"seeds {first} to {first + options.runs - 1}, {took:.0f} s\n")
    return 0 if found.accounted else 1


if __name__ == "__main__":
    sys.exit(main())
