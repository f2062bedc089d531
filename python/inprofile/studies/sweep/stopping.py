"""When a setting has had enough seeds: as soon as its intervals are as narrow as requested.

That is checked after 10 seeds, and again each time there are a quarter more: a check after every run would
stop at a lucky one. Checks come at fixed numbers of seeds, so that how many a setting gets follows from its
runs alone (docs/decisions/0045).
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from ...metrics.contracts import BY_RUN, figure_over_runs
from ...metrics.quantity import quantity
from .axes import SweepError, measured

FIRST_LOOK = 10
"""Seeds before the first look."""
_MORE = 1.25


@dataclass(frozen=True)
class Until:
    """Stop once half the width of the 95 % interval of `metric` is at most this."""

    metric: str
    half: float
    """In the metric's base unit; where `relative`, a share of the mean."""
    relative: bool = False

    def met(self, values: Sequence[float]) -> bool:
        """Whether the mean of these values is known so well."""
        if len(values) < FIRST_LOOK:
            return False
        found = figure_over_runs(self.metric, values)
        if found.half is None:
            return False
        return found.half <= self.half * (abs(found.mean) if self.relative else 1.0)

    def __str__(self) -> str:
        return f"{self.metric}={quantity(100 * self.half, '%') if self.relative else quantity(self.half)}"


def until_of(text: str) -> Until:
    """As `--until` takes it.

    >>> until_of("fi=0.01"), until_of("goodput=50 kbit/s").half, until_of("goodput=2 %").relative
    (Until(metric='fi', half=0.01, relative=False), 50000.0, True)

    Raises SweepError.
    """
    metric, equals, width = (part.strip() for part in text.partition("="))
    relative = width.endswith("%")
    found = measured(width.removesuffix("%").strip())
    if not equals or found is None or not (0 < found[0] < math.inf) or (relative and found[1]):
        raise SweepError(
            f"--until {text}: write METRIC=HALF_WIDTH, such as fi=0.01, goodput=50 kbit/s, or goodput=2 %"
            " for 2 % of the mean"
        )
    half = found[0] / 100 if relative else found[0]
    made = Until(metric, half, relative)
    unit = known_metrics()[named(metric)]
    if found[1] not in ("", unit):
        raise SweepError(
            f"--until {text}: {metric} has the unit {unit or 'of a plain number'}, not {found[1]}"
        )
    return made


def looks(most: int) -> Iterator[int]:
    """Numbers of seeds at which intervals are looked at, the last of them `most`.

    >>> list(looks(30)), list(looks(4))
    ([10, 13, 17, 22, 28, 30], [4])
    """
    at = FIRST_LOOK
    while at < most:
        yield at
        at = math.ceil(at * _MORE)
    yield most


@cache
def known_metrics() -> dict[str, str]:
    """Metrics with their units (empty for a plain number), as a second of two small experiments has them."""
    from ...experiment.dump import STARTER
    from ...experiment.scenario import parse

    short = {"duration": "2 s", "measure": {"from": "0.5 s", "to": "2 s"}, "seeds": 1, "monitors": []}
    transfers = {"traffic": {"kind": "transfer", "size": "10 kB"}}
    found: dict[str, str] = {}
    for more in ({}, {f"flows.assured.{key}": value for key, value in transfers.items()}):
        summary = parse(STARTER).with_({**short, **more}).run(jobs=1).summary()
        found.update({m.name: "" if m.unit == "1" else m.unit for m in summary.values()})
    found.update({name: unit.removesuffix("1") for name, unit in BY_RUN.items()})
    return found


def named(metric: str) -> str:
    """The metric, if there is one of that name; raise SweepError, with the nearest, if there is none."""
    known = known_metrics()
    if metric not in known:
        near = difflib.get_close_matches(metric, known, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise SweepError(f'no metric is called "{metric}": {hint}there are {", ".join(known)}')
    return metric
