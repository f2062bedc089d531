"""Points that fill a box evenly: Sobol sequences and Latin hypercubes, from a seed that a name gives."""

from __future__ import annotations

import hashlib
import math


def sobol(dimensions: int, count: int, name: str) -> list[list[float]]:
    """Give the first `count` points of a scrambled Sobol sequence in [0, 1)."""
    if count == 0:
        return []
    from scipy.stats import qmc

    sequence = qmc.Sobol(dimensions, scramble=True, rng=_seed(name))
    points = sequence.random_base2(math.ceil(math.log2(count)) if count > 1 else 0)
    rows: list[list[float]] = points[:count].tolist()
    return rows


def latin_hypercube(dimensions: int, count: int, name: str) -> list[list[float]]:
    """Give `count` points in [0, 1): each of `count` equal slices of every dimension has one."""
    from scipy.stats import qmc

    rows: list[list[float]] = qmc.LatinHypercube(dimensions, rng=_seed(name)).random(count).tolist()
    return rows


def _seed(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big")
