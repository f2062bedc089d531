"""How many seeds a paired comparison needs: the power of the t test, from a pilot's differences.

A pilot runs with seeds of its own, so that what it says of the effect is not used twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from .stats import mean

__all__ = ["MOST", "power_of", "seeds_needed"]

#: So many seeds a comparison may have; a pilot's lie beyond.
MOST = 40
#: The pilot's spread is taken at this upper confidence limit: few seeds easily show too little of it.
SURE = 0.8


def power_of(n: int, effect: float, alpha: float = 0.05) -> float:
    """Power of the two-sided paired t test with `n` seeds; `effect` in standard deviations of a difference.

    >>> round(power_of(34, 0.5), 3)
    0.808
    """
    from scipy.special import stdtrit
    from scipy.stats import nct

    critical = float(stdtrit(n - 1, 1 - alpha / 2))
    return float(nct.sf(critical, n - 1, abs(effect) * math.sqrt(n)))


def seeds_needed(
    pilot: Mapping[int, float], power: float = 0.9, margin: float = 0.0, most: int = MOST
) -> int | None:
    """How many seeds show with this `power` that the difference is not `margin`; None: more than `most`.

    `pilot` has the paired difference of each of its seeds. Its standard deviation is taken at the upper 80 %
    limit (Browne 1995), s·√((n − 1)/χ²), and the effect as it is.

    >>> seeds_needed({101: 1.2, 102: 0.7, 103: 1.1, 104: 0.9})
    4
    >>> seeds_needed({101: 0.4, 102: -0.5, 103: 0.3, 104: -0.1}) is None
    True

    Raises ValueError for seeds among 1 to `most`, fewer than two of them, and a power that is none.
    """
    from scipy.special import chdtri

    if not 0.05 < power < 1:
        raise ValueError(f"a power of {power:g} is none: give more than 0.05 and less than 1, such as 0.9")
    if len(pilot) < 2:
        raise ValueError("a pilot needs at least 2 seeds")
    if used := sorted(seed for seed in pilot if 1 <= seed <= most):
        raise ValueError(
            f"the pilot's seed {used[0]} is one that will be judged: take seeds above {most}, such as 101"
        )
    xs = [pilot[seed] for seed in sorted(pilot)]
    m, n = mean(xs), len(xs)
    spread = math.sqrt(math.fsum((x - m) ** 2 for x in xs) / float(chdtri(n - 1, SURE)))
    if m == margin:
        return None
    if spread == 0:
        # Equal differences: the sign test's six.
        return 6 if most >= 6 else None
    effect = (m - margin) / spread
    return next((k for k in range(2, most + 1) if power_of(k, effect) >= power), None)
