"""The same experiment in ns-2 and here, compared in distribution.

The exact profile and ns-2 draw other random numbers and break ties otherwise, so no run of one is a run of
the other. What can be asked is whether figures over many seeds are the same: two one-sided t-tests
(Schuirmann 1987) say whether the means differ by less than a margin, the two-sample Kolmogorov–Smirnov test
whether the distributions are distinguishable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

from ...experiment.scenario import Scenario
from ...metrics.stats import Interval, holm, jain, mean
from ...run.pool import threads
from ...run.results import Result
from . import TIMEOUT, Ns2, Ns2Failed, count, counting_script

ALPHA = 0.05
"""Each one-sided test's, and of the Kolmogorov–Smirnov tests of one experiment together."""
MARGINS = {"fi": 0.01, "lambda_in": 0.02, "lambda_out": 0.02, "throughput": 0.02, "drops": 0.03}
"""By how much means may differ: the fairness index by so much, all else by that share of ns-2's mean."""


class TooFewSeeds(ValueError):
    """A distribution of one run."""

    def __init__(self, file: str) -> None:
        super().__init__(f"{file}: one seed is no distribution: at least two, seeds = 2 or --seeds 2")


@dataclass(frozen=True)
class Figure:
    """One figure over the seeds of both."""

    name: str
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    margin: float
    """By how much the means may differ, in the figure's unit."""
    difference: float
    """Our mean less ns-2's."""
    ci90: Interval
    """Of the difference; inside the margin exactly where both one-sided tests reject at 5 %."""
    tost_p: float
    """The larger of the two one-sided p-values."""
    ks_p: float
    """Kolmogorov–Smirnov, adjusted by Holm for the figures of the experiment."""

    @property
    def equivalent(self) -> bool:
        """Whether the means are shown to be the same, within the margin."""
        return self.tost_p < ALPHA

    @property
    def alike(self) -> bool:
        """Whether the distributions are not distinguishable, at the level `ALPHA`."""
        return self.ks_p >= ALPHA

    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {
            "name": self.name,
            "ours": mean(self.ours),
            "ns2": mean(self.theirs),
            "n": len(self.ours),
            "margin": self.margin,
            "difference": self.difference,
            "ci90": list(self.ci90),
            "tost_p": self.tost_p,
            "equivalent": self.equivalent,
            "ks_p": self.ks_p,
            "alike": self.alike,
        }


@dataclass(frozen=True)
class Distribution:
    """One experiment, many seeds, run by both."""

    title: str
    file: str
    seeds: int
    """How many; ours are 1 to `seeds`, ns-2's the next as many, so that the samples are independent."""
    figures: tuple[Figure, ...]

    @property
    def equivalent(self) -> bool:
        """Whether every mean is the same within its margin, and no distributions are distinguishable."""
        return all(figure.equivalent and figure.alike for figure in self.figures)

    def to_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {
            "scenario": self.title,
            "file": self.file,
            "seeds": self.seeds,
            "equivalent": self.equivalent,
            "figures": [figure.to_json() for figure in self.figures],
        }

    def __str__(self) -> str:
        head = "equivalent" if self.equivalent else "not shown to be equivalent"
        lines = [f"{head}: {self.seeds} seeds each"]
        lines += [
            f"  {f.name:<11} {mean(f.ours):>12,.5g}  ns-2 {mean(f.theirs):>12,.5g}"
            f"  difference {f.difference:+.3g} [{f.ci90.lo:+.3g}, {f.ci90.hi:+.3g}] within ±{f.margin:.3g}:"
            f" {'yes' if f.equivalent else 'no'} (p {f.tost_p:.2g}); KS p {f.ks_p:.2g}"
            for f in self.figures
        ]
        return "\n".join(lines)


def equivalent(
    ours: Sequence[float], theirs: Sequence[float], margin: float
) -> tuple[float, Interval, float]:
    """Welch's two one-sided t-tests: difference of means, its 90 % interval, the larger p-value.

    >>> d, ci, p = equivalent([1.0, 1.1, 0.9, 1.0], [1.0, 1.05, 0.95, 1.0], 0.2)
    >>> d, round(ci.lo, 3), round(ci.hi, 3), p < 0.05
    (0.0, -0.095, 0.095, True)

    Raises ValueError with fewer than two values on a side.
    """
    from scipy.special import stdtr, stdtrit

    if len(ours) < 2 or len(theirs) < 2:
        raise ValueError("one seed is no distribution: at least two on each side")
    d = mean(ours) - mean(theirs)
    errors = [math.fsum((x - mean(xs)) ** 2 for x in xs) / (len(xs) - 1) / len(xs) for xs in (ours, theirs)]
    error = math.sqrt(math.fsum(errors))
    if error == 0:
        return d, Interval(d, d), 0.0 if abs(d) < margin else 1.0
    # Welch and Satterthwaite's degrees of freedom.
    df = math.fsum(errors) ** 2 / math.fsum(
        e**2 / (len(xs) - 1) for e, xs in zip(errors, (ours, theirs), strict=True)
    )
    half = float(stdtrit(df, 1 - ALPHA)) * error
    p = float(stdtr(df, (abs(d) - margin) / error))
    return d, Interval(d - half, d + half), p


def same_distribution(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """p-value of the two-sample Kolmogorov–Smirnov test.

    >>> same_distribution([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    1.0
    """
    from scipy.stats import ks_2samp

    return float(ks_2samp(ours, theirs).pvalue)


def figures(ours: dict[str, list[float]], theirs: dict[str, list[float]]) -> tuple[Figure, ...]:
    """Every figure that both have and that isn't 0 throughout, tested."""
    names = [name for name in MARGINS if name in ours and (any(ours[name]) or any(theirs[name]))]
    ks = holm([same_distribution(ours[name], theirs[name]) for name in names])
    made = []
    for name, ks_p in zip(names, ks, strict=True):
        margin = MARGINS[name] * (1.0 if name == "fi" else mean(theirs[name]))
        d, ci90, p = equivalent(ours[name], theirs[name], margin)
        made.append(Figure(name, tuple(ours[name]), tuple(theirs[name]), margin, d, ci90, p, ks_p))
    return tuple(made)


def validate_distribution(
    scenario: Scenario, seeds: int | None = None, *, timeout: float = TIMEOUT
) -> Distribution:
    """Run so many seeds (default: as many as the file says) here, as many others in ns-2, and compare.

    Each run of ns-2 is given `timeout` seconds. Raises `TooFewSeeds`, `NotInNs2`, `Ns2Missing` and
    `Ns2Failed`.
    """
    n = len(scenario.seeds) if seeds is None else seeds
    if n < 2:
        raise TooFewSeeds(scenario.file)
    scripts = [counting_script(scenario, seed) for seed in range(n + 1, 2 * n + 1)]
    ns2 = Ns2(timeout)
    with ThreadPoolExecutor(threads(None)) as pool:
        under_way = [pool.submit(_run, ns2, script) for script in scripts]
        try:
            for run in as_completed(under_way):
                run.result()
        except BaseException:
            # The pool waits for what its threads do.
            pool.shutdown(wait=False, cancel_futures=True)
            ns2.stop()
            raise
        runs = [run.result() for run in under_way]
    theirs = {name: [run[name] for run in runs] for name in runs[0]}
    return Distribution(scenario.title, scenario.file, n, figures(_ours(scenario.run(seeds=n)), theirs))


_KNOWN: dict[tuple[str, str], dict[str, float]] = {}
"""Counts of programs by script: experiments that are one script to ns-2 share its runs."""


def _run(ns2: Ns2, script: str) -> dict[str, float]:
    """The figures of one run of ns-2."""
    key = ns2.program, script
    if key in _KNOWN:
        return _KNOWN[key]
    text = count(ns2, script)
    try:
        return _KNOWN.setdefault(key, counted(text))
    except (ValueError, KeyError, IndexError):
        raise Ns2Failed(0, f"its counts are not whole: {text!r}") from None


def counted(text: str) -> dict[str, float]:
    r"""The figures from what the script counted at both ends of the window.

    >>> found = counted("span 10\nflow 40 2120 1000 40 1\npackets 1040 0 0 0 0\npackets 1040 3 1 0 2")
    >>> found["throughput"], found["drops"], found["lambda_out"]
    (1664.0, 2.0, 832.0)
    """
    span = 0.0
    begun: list[float] = []
    ends: list[tuple[float, list[float]]] = []
    wire: list[float] = []
    payload: list[float] = []
    for line in text.splitlines():
        what, *words = line.split()
        numbers = [float(word) for word in words]
        if what == "span":
            (span,) = numbers
        elif what == "flow":
            before, after, segment, header, passes = numbers
            # The first packet of a flow is a header alone; all others are whole segments.
            useful = [max(0.0, x - header) * segment / (segment + header) for x in (before, after)]
            begun += [header] if passes and before == 0 < after else []
            wire.append(after - before)
            payload.append(useful[1] - useful[0])
        else:
            ends.append((1.0, numbers) if what == "bytes" else (numbers[0], numbers[1:]))
    (size, first), (_, last) = ends
    green, yellow, red, drops = (b - a for a, b in zip(first, last, strict=True))
    # Where packets are counted, one of each flow that began in the window was a header and no full packet.
    short = 0.0 if size == 1.0 else math.fsum(size - header for header in begun)
    return {
        "fi": jain(payload),
        "throughput": 8 * math.fsum(wire) / span,
        "lambda_in": 8 * max(0.0, green * size - short) / span,
        "lambda_out": (yellow + red) * 8 * size / span,
        "drops": drops,
    }


def _ours(result: Result) -> dict[str, list[float]]:
    """The same figures of our runs, seed by seed."""
    found: dict[str, list[float]] = {}
    for row in result.metrics.to_pylist():
        if row["name"] in MARGINS:
            found.setdefault(row["name"], []).append(row["value"])
    return found
