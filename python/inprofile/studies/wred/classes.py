"""The classes of an experiment's link as a switch's schedulers, and as maps from code points to queues."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...metrics.quantity import bits_per_second
from .switch import Scheduler

__all__ = ["PHBS", "code_points", "schedulers_of"]

PHBS = {
    "ef": (46,),
    **{f"af{i}": tuple(8 * i + 2 * j for j in (1, 2, 3)) for i in range(1, 5)},
    **{f"af{i}{j}": (8 * i + 2 * j,) for i in range(1, 5) for j in (1, 2, 3)},
    **{f"cs{i}": (8 * i,) for i in range(8)},
    "le": (1,),
    "df": (0,),
    "be": (0,),
    "best_effort": (0,),
}
"""Code points of the classes that have a standard's name (RFC 2474, 2597, 3246, 8622)."""


def schedulers_of(where: str, queue: Mapping[str, Any], faults: list[str]) -> list[Scheduler]:
    """The scheduler of each class, in their order; `faults` grows by what a switch cannot say."""
    classes = queue["classes"]
    weights = [1] * len(classes)
    if queue["scheduler"] == "drr":
        quanta = [round(one["quantum"]["bytes"]) for one in classes]
        common = math.gcd(*quanta)
        weights = [quantum // common for quantum in quanta]
        if max(weights) > 100:
            faults.append(
                f"{where}: quanta of {', '.join(f'{q} B' for q in quanta)} are weights up to {max(weights)}:"
                " a switch has 1 to 100: write quanta that are whole multiples of their least"
            )
    found, limited = [], True
    for one, weight in zip(classes, weights, strict=True):
        rate = one.get("rate")
        bytes_each = None if rate is None else math.ceil(bits_per_second(rate) / 8)
        strict = queue["scheduler"] == "priority"
        # Where all that goes first has a rate, what is left is certain; else the rate is a guarantee as well.
        least = None if strict and limited else bytes_each
        limited = limited and bytes_each is not None
        kind = "STRICT" if strict else "DWRR"
        found.append(Scheduler(kind, 1 if strict else weight, cir=least, pir=bytes_each))
    return found


def code_points(
    where: str, names: Sequence[str], given: Mapping[str, Sequence[int]], faults: list[str]
) -> dict[str, tuple[int, ...]]:
    """By class its code points: those given, or what its name says."""
    found: dict[str, tuple[int, ...]] = {}
    taken: dict[int, str] = {}
    for name in given.keys() - set(names):
        faults.append(f"{where}: --dscp {name}=…: there is no class {name}; there are: {', '.join(names)}")
    for name in names:
        dscps = tuple(given.get(name, PHBS.get(re.sub(r"[-\s]", "_", name.lower()), ())))
        if not dscps:
            faults.append(f"{where}: class {name}: which code points are its? Say --dscp {name}=10,12,14")
        for dscp in dscps:
            if taken.setdefault(dscp, name) != name:
                faults.append(f"{where}: code point {dscp} is {taken[dscp]}'s and {name}'s: give it to one")
        found[name] = dscps
    return found
