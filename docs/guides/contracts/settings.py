"""How long the queue may get and how deep a bucket has to be: prints the tables of settings.md.

    python docs/guides/contracts/settings.py

T, of TSW2CM + WRED: on links with ten or forty contracts of 60 % of the link and as many flows without one,
by round trip and sender. Depth, of a token bucket before RIO with T = 48 ms: five contracts of half of the
link, twice an equal share each, beside fifteen flows without one. What is finished stays in
results/cache/compare.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from inprofile import Result
from inprofile.experiment.mechanisms import sender
from inprofile.experiment.scenario import Scenario, load
from inprofile.metrics.measures import Measures, by_flow, rows
from inprofile.metrics.stats import FREE, SHARE, estimate
from inprofile.run.experiments import Experiment, measure_all
from inprofile.studies.compare.measure import measure
from inprofile.studies.compare.run import CACHE
from inprofile.studies.compare.schemes import HERE, Place, about, choose

BASE = "unequal-contracts.toml"
SEEDS = 8
ROUND_TRIPS = (20, 60, 180)
#: Contracts of the comparison's experiment, in kbit/s.
STEPS = (200, 400, 600, 800, 1000)
RENO, CUBIC, PRAGUE, BBR = "Reno (ns-2)", "CUBIC", "Prague", "BBR"
SENDERS: Mapping[str, Mapping[str, object]] = {
    RENO: about()["tcp"][0]["set"],
    CUBIC: sender("linux").changes,
    PRAGUE: sender("prague").changes,
    BBR: sender("bbr").changes,
}
LENGTHS = (0.006, 0.012, 0.024, 0.048, 0.096, 0.192)
DEPTHS = (1, 2, 4, 8, 16, 32, 64)
#: A bucket that a packet fits into twice.
LEAST = 3000


@dataclass(frozen=True)
class Row:
    """What is varied of a run beside T or the depth."""

    link: str
    rtt: int
    tcp: str


def scenario(tcp: str, rtt: int, changes: Mapping[str, object]) -> Scenario:
    """The comparison's experiment with other senders, round trips and flows."""
    trips = {f"flows.{group}.rtt": f"{rtt} ms" for group in ("assured", "best-effort")}
    return load(HERE / BASE).with_({**SENDERS[tcp], **changes, **trips})


def contracts(scale: float, count: int) -> list[str]:
    """As many contracts, in the comparison's steps."""
    return [f"{scale * x:g} kbit/s" for x in STEPS] * (count // len(STEPS))


#: By name: what is changed of the comparison's 10 Mbit/s with ten contracts.
LINKS: Mapping[str, Mapping[str, object]] = {
    "10 Mbit/s, 20 flows": {},
    "10 Mbit/s, 80 flows": {
        "flows.assured.count": 40,
        "flows.best-effort.count": 40,
        "flows.assured.contract": contracts(0.25, 40),
    },
    "40 Mbit/s, 20 flows": {"links.bottleneck.rate": "40 Mbit/s", "flows.assured.contract": contracts(4, 10)},
}


def lengths() -> dict[tuple[Row, float], Measures]:
    """Every T on every link."""
    [scheme] = choose(["tsw2cm-wred"])
    made = {}
    for link, changes in LINKS.items():
        for rtt in ROUND_TRIPS:
            for tcp in (RENO, CUBIC, BBR):
                base = scenario(tcp, rtt, changes)
                place = Place.of(base)
                for length in LENGTHS:
                    made[Row(link, rtt, tcp), length] = base.with_(scheme.values(place, length))
    return measured(made, measure)


def depths() -> dict[tuple[Row, float], Measures]:
    """Every depth for every contract; depths in round trips without the queue."""
    [scheme] = choose(["rio"])
    made = {}
    for mbit in (0.25, 1, 4):
        for rtt in ROUND_TRIPS:
            for tcp in SENDERS:
                base = scenario(
                    tcp,
                    rtt,
                    {
                        "links.bottleneck.rate": f"{10 * mbit:g} Mbit/s",
                        "flows.assured.count": 5,
                        "flows.assured.contract": f"{mbit:g} Mbit/s",
                        "flows.best-effort.count": 15,
                    },
                )
                values = scheme.values(Place.of(base), 0.048)
                for depth in DEPTHS:
                    size = depth * 1e3 * mbit * rtt / 8
                    if size >= LEAST:
                        deep = {**values, "flows.assured.marker.depth": f"{size:.0f} B"}
                        made[Row(f"{mbit:g} Mbit/s", rtt, tcp), float(depth)] = base.with_(deep)
    return measured(made, shares)


def shares(result: Result) -> Measures:
    """What contracts get of their rates, the mean and the least of the run; the queue's wait."""
    got = by_flow(result.flows, result.seeds, "throughput")
    bought = by_flow(result.flows, result.seeds, "contract")[0]
    of = got[:, np.isfinite(bought)] / bought[np.isfinite(bought)]
    wait = rows(result.metrics, result.seeds, name="delay_mean")["value"]
    return Measures(
        tuple(result.seeds), {"mean": of.mean(axis=1), "least": of.min(axis=1), "delay": wait}, {}
    )


def measured(made: Mapping[tuple[Row, float], Scenario], how: object) -> dict[tuple[Row, float], Measures]:
    """Run them all."""
    experiments = [Experiment(one, SEEDS, [getattr(how, "__name__", "")]) for one in made.values()]
    found = measure_all(experiments, lambda _, result: how(result), cache=CACHE, progress=told)  # type: ignore[operator]
    return dict(zip(made, found, strict=True))


def told(runs: int) -> None:
    """Progress, to standard error."""
    sys.stderr.write(f"\r{runs} runs ")


def shown(values: Sequence[float], share: bool = True) -> str:
    """A mean with its interval, in per cent."""
    found = estimate([float(x) for x in values], SHARE if share else FREE)
    if found.ci95 is None or max(values) - min(values) < 5e-4:
        return f"{100 * found.mean:.1f}"
    return f"{100 * found.mean:.1f} [{100 * found.ci95.lo:.1f}, {100 * found.ci95.hi:.1f}]"


def table(found: Mapping[tuple[Row, float], Measures], of: str, unit: str, share: bool = True) -> str:
    """A row a link, round trip and sender; a column a T or a depth."""
    columns = sorted({column for _, column in found})
    head = f"| {of}, % | round trip | senders |"
    lines = [head + "".join(f" {c * (1e3 if unit == 'ms' else 1):g} {unit} |" for c in columns)]
    lines.append("|---" * (3 + len(columns)) + "|")
    for row in dict.fromkeys(row for row, _ in found):
        cells = [shown(list(found[row, c][of]), share) if (row, c) in found else "–" for c in columns]
        lines.append(f"| {row.link} | {row.rtt} ms | {row.tcp} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Both, with every measure that the page speaks of."""
    by_length, by_depth = lengths(), depths()
    for of in ("utilisation", "kept", "best_effort"):
        sys.stdout.write(f"\n{table(by_length, of, 'ms')}\n")
    sys.stdout.write("\nWait over T, %\n")
    waits = {(r, t): Measures(m.seeds, {"wait": m["delay"] / t}, {}) for (r, t), m in by_length.items()}
    sys.stdout.write(f"\n{table(waits, 'wait', 'ms', share=False)}\n")
    for of in ("mean", "least"):
        sys.stdout.write(f"\n{table(by_depth, of, 'round trips', share=False)}\n")
    waits = {(r, d): Measures(m.seeds, {"wait": 10 * m["delay"]}, {}) for (r, d), m in by_depth.items()}
    sys.stdout.write(f"\nWait in the queue, ms\n\n{table(waits, 'wait', 'round trips', share=False)}\n")


if __name__ == "__main__":
    main()
