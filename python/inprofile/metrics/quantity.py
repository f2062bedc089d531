"""Numbers as a person writes them: `1.2 Mbit/s`, `26 ms`, `0.997 ± 0.001`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .stats import Estimate

_STEPS: dict[str, Sequence[tuple[float, str]]] = {
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "B": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}


_RATES = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9, "Tbit/s": 1e12}
_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "ps": 1e-12}


def scale(unit: str, size: float) -> tuple[float, str]:
    """Factor and unit in which a value of this size reads well.

    >>> scale("bit/s", 1_200_000)
    (1000000.0, 'Mbit/s')
    """
    steps = _STEPS.get(unit, ((1.0, unit),))
    if size == 0 or not math.isfinite(size):
        return 1.0, unit
    return next((step for step in steps if abs(size) >= step[0] * (1 - 1e-12)), steps[-1])


def bits_per_second(text: str) -> float:
    """A rate as an effective experiment writes it.

    >>> bits_per_second("1.2 Mbit/s")
    1200000.0
    """
    amount, unit = text.split()
    return float(amount) * _RATES[unit]


def in_seconds(text: str) -> float:
    """A time as an effective experiment writes it.

    >>> in_seconds("20 s"), in_seconds("100 ms")
    (20.0, 0.1)
    """
    amount, unit = text.split()
    return float(amount) * _TIMES[unit]


def number(value: float, digits: int = 4) -> str:
    """Significant digits without an exponent where that can be read, and without trailing zeros.

    >>> number(0.99712), number(1040.0), number(123456.0), number(0.0)
    ('0.9971', '1040', '123456', '0')
    """
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    exponent = math.floor(math.log10(abs(value)))
    if exponent < -4:
        return f"{value:.{max(0, digits - 1)}e}"
    text = f"{value:.{max(0, digits - 1 - exponent)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def quantity(value: float, unit: str = "", digits: int = 4) -> str:
    """Value and unit.

    >>> quantity(250e3, "bit/s"), quantity(0.026, "s"), quantity(3.0, "packets")
    ('250 kbit/s', '26 ms', '3 packets')
    """
    factor, name = scale(unit, value)
    return f"{number(value / factor, digits)} {name}".rstrip()


def together(*values: float, decimals: int) -> list[str]:
    """Values that belong together, with as many decimals each: what lies between two is printed so, too.

    >>> together(0.9997, 0.9990, 1.0, decimals=4), together(-0.001, 0.26, decimals=1)
    (['0.9997', '0.9990', '1.0000'], ['0.0', '0.3'])
    """
    # Adding 0.0 makes a rounded −0 a plain 0.
    return [f"{round(x, decimals) + 0.0:.{decimals}f}" for x in values]


def bracketed(
    mean: float, ci95: Sequence[float] | None, decimals: int, unit: str = "", factor: float = 1.0
) -> str:
    """A mean with both ends of its interval, in units of `factor`: `98.5 [47.1, 100.0] %`.

    >>> bracketed(0.985, (0.4712, 1.0), 1, "%", 0.01), bracketed(2.9982, None, 3)
    ('98.5 [47.1, 100.0] %', '2.998')
    """
    middle, *ends = together(*(x / factor for x in (mean, *(ci95 or ()))), decimals=decimals)
    return f"{middle} [{', '.join(ends)}] {unit}".rstrip() if ends else f"{middle} {unit}".rstrip()


#: From this ratio of its two arms on an interval is written with both ends.
LOPSIDED = 1.1


def pm(estimate: Estimate, unit: str = "") -> str:
    """Mean ± half the 95 % interval, as many decimals as the interval deserves; lopsided, with both ends.

    >>> from inprofile.metrics.stats import Estimate, Interval
    >>> pm(Estimate(0.99712, Interval(0.9958, 0.9984), 20))
    '0.9971 ± 0.0013'
    >>> pm(Estimate(464200.0, Interval(459e3, 469.4e3), 10), "bit/s")
    '464.2 ± 5.2 kbit/s'
    >>> pm(Estimate(0.995, Interval(0.981, 0.9987), 5))
    '0.9950 [0.9810, 0.9987]'
    """
    half = estimate.half
    if estimate.ci95 is None or half is None or not math.isfinite(half):
        return quantity(estimate.mean, unit)
    factor, name = scale(unit, max(abs(estimate.mean), half))
    m, h = estimate.mean / factor, half / factor
    if h == 0:
        return f"{number(m)} ± 0 {name}".rstrip()
    decimals = min(8, max(0, 1 - math.floor(math.log10(h))))
    lo, hi = estimate.ci95
    arms = sorted((estimate.mean - lo, hi - estimate.mean))
    if arms[1] > LOPSIDED * arms[0]:
        return bracketed(estimate.mean, estimate.ci95, decimals, name, factor)
    return f"{m:.{decimals}f} ± {h:.{decimals}f} {name}".rstrip()


def mean_pm(
    values: Iterable[float], factor: float = 1.0, bounds: tuple[float, float] | None = None, unit: str = ""
) -> str:
    """`pm` of values, one a seed, in units of `factor`; `bounds` (in their own unit) as in `stats`.

    >>> mean_pm([1000.0, 3000.0, 2000.0], 1e3), mean_pm([0.9, 0.95, 0.99], bounds=(0.0, 1.0))
    ('2.0 ± 2.5', '0.95 [0.66, 0.99]')
    """
    from .stats import FREE, estimate

    lo, hi = bounds or FREE
    return pm(estimate((float(v) / factor for v in values), (lo / factor, hi / factor)), unit)
