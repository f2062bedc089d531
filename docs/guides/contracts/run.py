"""Every scheme on contracts.toml with eight pairs of senders, and on mixed.toml: tables of contracts-today.

    python docs/guides/contracts/run.py [--quick]

The advice for mixed senders goes into the package, from where the start page has it. What is finished
stays in results/cache/compare, so that an interrupted run goes on where it was.
"""

from __future__ import annotations

import sys
from pathlib import Path

from inprofile.metrics.stats import SHARE, estimate
from inprofile.run.storage import record_lines, replace_text
from inprofile.studies.compare import Comparison, compare
from inprofile.studies.compare.advice import MIXED, advice

HERE = Path(__file__).parent
HOLDERS = {"sack": "Reno", "cubic": "CUBIC"}
OTHERS = {"sack": "Reno", "cubic": "CUBIC", "prague": "Prague", "bbr": "BBR"}


def compared(holder: str, other: str, quick: bool) -> Comparison:
    """All schemes, with these congestion controls for flows with and without a contract."""
    changes = [("flows.assured.tcp.congestion", holder), ("flows.best-effort.tcp.congestion", other)]
    if other == "prague":
        changes.append(("flows.best-effort.tcp.ecn", "true"))
    out = Path("reports") / "contracts" / f"{holder}-{other}"
    return compare([HERE / "contracts.toml"], quick=quick, out=out, overrides=changes, progress=told)


def mixed(quick: bool) -> Comparison:
    """All schemes where all four senders share the link, with contracts and without."""
    made = compare(
        [HERE / "mixed.toml"], quick=quick, out=Path("reports") / "contracts" / "mixed", progress=told
    )
    if not quick:
        replace_text(MIXED, record_lines(advice(made)))
    return made


def told(done: int, runs: int, what: str) -> None:
    """Progress, to standard error."""
    sys.stderr.write(f"\r{done} of {runs} runs ")


def cell(made: Comparison, scheme: str, measure: str) -> str:
    """A scheme's mean at equal delay with its interval, in per cent."""
    [one] = made.outcomes
    values = one.at_equal_delay(measure).get(scheme)
    if values is None:
        return "–"
    found = estimate(values, SHARE)
    if found.ci95 is None or max(values) - min(values) < 5e-4:
        return f"{100 * found.mean:.1f}"
    return f"{100 * found.mean:.1f} [{100 * found.ci95.lo:.1f}, {100 * found.ci95.hi:.1f}]"


def main() -> None:
    """A table for each congestion control of the flows with contracts and each measure."""
    quick = "--quick" in sys.argv[1:]
    for holder, named in HOLDERS.items():
        made = {other: compared(holder, other, quick) for other in OTHERS}
        first = next(iter(made.values()))
        delays = [d for one in made.values() for d in one.outcomes[0].delays]
        low, high = (1e3 * f(delays) for f in (min, max))
        sys.stdout.write(f"\nWith a contract: {named}; mean queueing delays of {low:.0f} to {high:.0f} ms\n")
        for measure in ("kept", "best_effort"):
            heads = " | ".join(f"others: {name}" for name in OTHERS.values())
            sys.stdout.write(f"\n| {measure}, % | {heads} |\n|---|{'---|' * len(OTHERS)}\n")
            for scheme in first.plan.schemes:
                cells = " | ".join(cell(one, scheme.id, measure) for one in made.values())
                sys.stdout.write(f"| {scheme.title} | {cells} |\n")
    every = mixed(quick)
    low, high = (1e3 * f(every.outcomes[0].delays) for f in (min, max))
    sys.stdout.write(f"\nAll four on one link; mean queueing delays of {low:.0f} to {high:.0f} ms\n")
    sys.stdout.write(
        "\n| all four senders | contract kept, % | best effort, % of the link |\n|---|---|---|\n"
    )
    for scheme in every.plan.schemes:
        cells = " | ".join(cell(every, scheme.id, measure) for measure in ("kept", "best_effort"))
        sys.stdout.write(f"| {scheme.title} | {cells} |\n")


if __name__ == "__main__":
    main()
