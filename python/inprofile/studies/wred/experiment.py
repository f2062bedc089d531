"""The measured link's queue of an experiment as a switch's queue with a WRED profile: a plan, deployed.

A switch holds a curve by colour against the average of the whole queue, in bytes. RED and WRED with one
average say that; RIO, whose IN packets have an average of their own, does not, nor do other disciplines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ...experiment.scenario import Scenario
from ...metrics.quantity import bits_per_second
from .profile import COLOURS, Curve, Port, Profile
from .written import Unsayable

__all__ = ["port_of"]


def port_of(scenario: Scenario, queue: str, name: str = "inprofile") -> Port:
    """The measured link as a switch's `queue` (`Ethernet0|3`), with a profile of this name.

    Raises Unsayable with everything that a switch's WRED profile cannot say.
    """
    effective = scenario.check().effective
    at = effective["measure"]["at"]
    link = next(one for one in effective["links"] if one["name"] == at)
    found = link["queue"]
    if "aqm" not in found:
        raise Unsayable(f"{at}: its classes each have a queue: measure one of them by itself")
    kind, faults = found["aqm"], []
    where = f"{at}.queue"
    if kind not in ("red", "wred"):
        raise Unsayable(
            f'{where}: aqm = "{kind}": a WRED profile holds curves against the average of the whole queue, as'
            " red and wred do: plan with --schemes srtcm-wred,tsw2cm-wred"
        )
    if found.get("averages", "shared") != "shared":
        faults.append(f'{where}: averages = "{found["averages"]}": a switch has one average: write "shared"')
    if found.get("gentle") is True:
        faults.append(
            f"{where}: gentle = true: a switch drops everything from max_th on: write gentle = false"
        )
    marks = {c: found[f"{c}_ecn"] for c in COLOURS if isinstance(found.get(f"{c}_ecn"), Mapping)}
    drops = {c: found if kind == "red" else found[c] for c in COLOURS if kind == "red" or found.get(c)}
    drop = {c: _curve(fields) for c, fields in drops.items()}
    mark = {c: _curve(fields) for c, fields in marks.items()}
    if found.get("ecn") is True and not mark:
        mark = dict(drop)
    weight = -math.log2(found["w_q"])
    if abs(weight - round(weight)) > 1e-9:
        near = 2.0 ** -round(weight)
        faults.append(f"{where}: w_q = {found['w_q']:g}: a switch has powers of two: write {near:g}")
    if faults:
        raise Unsayable("\n".join(faults))
    profile = Profile(name, where, drop, mark, round(weight))
    return Port(profile, (queue,), bits_per_second(link["rate"]), int(found["limit"]["bytes"]))


def _curve(fields: Mapping[str, Any]) -> Curve:
    low, high = (round(fields[key]["bytes"]) for key in ("min_th", "max_th"))
    return Curve(low, high, float(fields["max_p"]))
