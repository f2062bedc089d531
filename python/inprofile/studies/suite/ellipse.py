"""The 1 − ε ellipse of RFC 7928 §2.7: of the maximum-likelihood Gaussian that explains a set of points."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["ellipse"]

Point = tuple[float, float]


def ellipse(points: Sequence[Point], epsilon: float, corners: int = 48) -> list[Point]:
    """The contour that holds 1 − ε of the distribution's mass, as points around it; closed.

    With fewer than three points, or where they do not spread, there is none but the points' mean.

    >>> round = [(math.cos(a), math.sin(a)) for a in (0, math.pi / 2, math.pi, 3 * math.pi / 2)]
    >>> around = ellipse(round, 0.5)
    >>> {f"{math.hypot(*p):.3f}" for p in around}
    {'0.833'}
    """
    n = len(points)
    mx, my = (sum(p[i] for p in points) / n for i in (0, 1))
    if n < 3:
        return [(mx, my)]
    # Maximum likelihood: divided by n, not by n − 1.
    xx = sum((x - mx) ** 2 for x, _ in points) / n
    yy = sum((y - my) ** 2 for _, y in points) / n
    xy = sum((x - mx) * (y - my) for x, y in points) / n
    # Of two dimensions the mass within Mahalanobis distance r is 1 − exp(−r²/2).
    r = math.sqrt(-2 * math.log(epsilon))
    # The covariance is L Lᵀ, and L turns a circle into the ellipse.
    a = math.sqrt(xx)
    b = xy / a if a > 0 else 0.0
    c = math.sqrt(max(0.0, yy - b * b))
    turns = (2 * math.pi * k / corners for k in range(corners + 1))
    return [(mx + r * a * math.cos(t), my + r * (b * math.cos(t) + c * math.sin(t))) for t in turns]
