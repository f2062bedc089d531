"""The known differences, and the runs that show their cause: every figure that the page quotes of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from inprofile import Result, load
from inprofile.metrics.stats import holm, mean
from inprofile.studies.validate.distribution import ALPHA, Distribution, same_distribution

FOLDER = Path(__file__).parent / "distribution"

PAPER_D_SEEDS = 3200
BLOCK = 160
"""Seeds of one of the blocks that paper D's are cut into."""


@dataclass(frozen=True)
class Reason:
    """Why the distributions of an experiment's figures are statistically distinguishable."""

    text: str
    """For the page, made from the runs."""
    holds: bool
    """Whether the runs show it."""


@dataclass(frozen=True)
class Explanation:
    """The differences that may be statistically distinguishable, and no more than that."""

    distinguishable: frozenset[str]
    """Figures whose means are equivalent and whose distributions are distinguishable."""
    reason: Callable[[int], Reason]
    """Shows why, over so many seeds."""


def accounted(found: Distribution, explanation: Explanation | None, reason: Reason | None) -> bool:
    """Whether the comparison is as it should be.

    Without an explanation all is equivalent and alike; with one every mean is still within its margin,
    exactly the figures named have distinguishable distributions, and the runs show why.
    """
    if explanation is None or reason is None:
        return found.equivalent
    distinguishable = {figure.name for figure in found.figures if not figure.alike}
    return (
        all(figure.equivalent for figure in found.figures)
        and distinguishable == explanation.distinguishable
        and reason.holds
    )


def by_seed(result: Result, name: str) -> list[float]:
    """One figure of every seed."""
    return [row["value"] for row in result.metrics.to_pylist() if row["name"] == name]


def forced(result: Result, place: str) -> dict[int, int]:
    """Packets dropped there because the average was above max_th, by seed."""
    dropped: Counter[int] = Counter()
    for row in result.drops.to_pylist():
        if row["place"] == place and row["cause"] == "forced":
            dropped[row["seed"]] += row["in"] + row["out"] + row["red"]
    return dict(+dropped)


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The three.

    >>> quartiles([5.0, 1.0, 2.0, 3.0, 4.0])
    (2.0, 3.0, 4.0)
    """
    import numpy as np

    low, middle, high = np.percentile(values, [25, 50, 75])
    return float(low), float(middle), float(high)


def rio(seeds: int) -> Reason:
    """Paper A's RIO against dsRED, both here, and against those of its seeds without forced drops."""
    runs = {name: load(FOLDER / f"paper-a-{name}.toml").run(seeds=seeds) for name in ("dsred", "rio")}
    forces = {name: forced(run, "bottleneck") for name, run in runs.items()}
    free = [i for i, seed in enumerate(runs["dsred"].seeds) if seed not in forces["dsred"]]
    names = ("throughput", "drops")
    pairs = [(by_seed(runs["dsred"], name), by_seed(runs["rio"], name)) for name in names]
    whole = holm([same_distribution(*pair) for pair in pairs])
    alike = holm([same_distribution([a[i] for i in free], b) for a, b in pairs])
    drops, ours = pairs[1]
    most = max(drops[i] for i in free)
    tail = [i for i, n in enumerate(drops) if n > most]
    (a, b, c), (x, y, z) = quartiles(drops), quartiles(ours)
    text = (
        "every mean is within its margin, but the distributions of drops and throughput are distinguishable. "
        "dsRED's p_b / (1 − count·p_b) has no guard: once it is negative nothing is dropped until the "
        "average is past max_th, and then all that comes is. "
        f"Such forced drops are in {len(forces['dsred'])} of {seeds} seeds of `dsred` here (paper-a-dsred, "
        f"statistically indistinguishable from ns-2's), and in {len(forces['rio']) or 'none'} of RIO's; the "
        f"{len(tail)} seeds with more drops in the window than {most:.0f} are all among them. Quartiles "
        f"of drops are {a:.0f}, {b:.0f}, {c:.0f} with `dsred` and {x:.0f}, {y:.0f}, {z:.0f} with `rio`. "
        f"The Kolmogorov–Smirnov test distinguishes all of `dsred`'s seeds from RIO's (throughput p "
        f"{whole[0]:.2g}, drops p {whole[1]:.2g}), but not those without forced drops (p {alike[0]:.2g} and "
        f"{alike[1]:.2g})"
    )
    holds = not forces["rio"] and max(whole) < ALPHA <= min(alike)
    return Reason(text, holds)


def paper_d() -> str:
    """Whether ties make the profiles distinguishable in paper D's baseline, whose flows start in step."""
    base = load(FOLDER / "paper-d-red.toml")
    as_ns2 = base.set("links.bottleneck.queue.variant", "ns2")
    runs = [e.run(seeds=PAPER_D_SEEDS) for e in (base, as_ns2, as_ns2.set("engine.profile", "ns2"))]
    (exact, middle, ns2), drops = ([by_seed(run, name) for run in runs] for name in ("fi", "drops"))
    blocks = [(exact[i : i + BLOCK], ns2[i : i + BLOCK]) for i in range(0, PAPER_D_SEEDS, BLOCK)]
    low = sum(same_distribution(*block) < ALPHA for block in blocks)
    first = exact[:BLOCK]
    spread = math.sqrt(math.fsum((x - mean(exact)) ** 2 for x in exact) / (PAPER_D_SEEDS - 1) / BLOCK)
    off = (mean(first) - mean(exact)) / spread
    p = same_distribution
    return (
        "Paper D's five flows start at one moment, in step, so ties might have made a difference. Of the "
        f"ns-2 profile, which is ns-2's run to the last figure, and of the exact profile {PAPER_D_SEEDS:,} "
        f"seeds each give a fairness index of {mean(ns2):.5f} and {mean(exact):.5f} (Kolmogorov–Smirnov p "
        f"{p(exact, ns2):.2g}), with ns-2's RED in the exact profile {mean(middle):.5f} (p "
        f"{p(middle, ns2):.2g}). Fewer seeds can mislead: of seeds 1 to {BLOCK} here against ns-2's "
        f"{BLOCK + 1} to {2 * BLOCK} alone the test says p {p(first, ns2[BLOCK : 2 * BLOCK]):.2g}, for the "
        f"mean of those {BLOCK} is {abs(off):.1f} standard errors {'low' if off < 0 else 'high'}; of "
        f"{len(blocks)} such blocks against ns-2's of the same numbers {low} have p below {ALPHA:g}. Drops "
        f"are {mean(drops[0]):.2f} here and {mean(drops[2]):.2f} in the ns-2 profile (p "
        f"{p(drops[0], drops[2]):.2g}), and with ns-2's RED here {mean(drops[1]):.2f} (p "
        f"{p(drops[1], drops[2]):.2g}): ns-2 counts otherwise between drops."
    )


EXPLAINED = {"paper-a-rio": Explanation(frozenset({"throughput", "drops"}), rio)}
"""Experiments of which some distributions are distinguishable."""
