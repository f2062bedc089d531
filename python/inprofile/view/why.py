"""Why a packet got its colour, or was dropped: the figures behind a verdict as sentences.

What would have saved it is said only where the law at hand gives the recorded probability again from the
recorded average; of other laws the figures are shown with what they mean.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..metrics.glossary import entries
from ..metrics.quantity import bits_per_second, number

Table = Mapping[str, Any]
_NEAR = 1e-6
_FIGURES = "Figures behind a decision"
_COLOURS = {"in": ("in", "green"), "out": ("out", "yellow"), "red": ("red", "out")}


@dataclass(frozen=True)
class Step:
    """One verdict on a packet."""

    time: float
    """In s."""
    point: str
    verdict: str
    cause: str | None
    why: Mapping[str, float]


@dataclass(frozen=True)
class Explained:
    """A step in words."""

    step: Step
    what: str
    """The decision, and its figures."""
    otherwise: tuple[str, ...]
    """The values that would have decided otherwise at that moment, all else being equal."""

    def to_json(self) -> dict[str, Any]:
        """As the page reads it; each figure with its meaning."""
        return {
            "time": self.step.time,
            "point": self.step.point,
            "verdict": self.step.verdict,
            "cause": self.step.cause,
            "what": self.what,
            "otherwise": list(self.otherwise),
            "figures": [
                {"name": name, "value": value, "meaning": _meaning(name)}
                for name, value in self.step.why.items()
            ],
        }


def explain(effective: Table, flow: str, steps: Sequence[Step]) -> list[Explained]:
    """The history of a packet of this flow, step by step."""
    group = _group(effective, flow)
    colour = None
    found = []
    for step in steps:
        marked = step.verdict in _COLOURS or step.cause == "policed"
        if marked and _place(effective, step.point, group) is None:
            colour = step.verdict
            found.append(_marked(effective, group, flow, step))
        else:
            queue = _place(effective, step.point, group)
            found.append(_queued(queue or {}, step, colour))
    return found


def _group(effective: Table, flow: str) -> Table:
    name = flow.rpartition(".")[0]
    groups = {str(g["name"]): g for g in effective.get("flows", ())}
    return groups.get(flow) or groups.get(name) or {}


def _place(effective: Table, point: str, group: Table) -> Table | None:
    """The queue at a point, if it is a link's."""
    for link in effective.get("links", ()):
        if link.get("name") == point:
            queue = link.get("queue")
            return queue if isinstance(queue, dict) else {}
    if point.endswith((".join", ".join.reverse")):
        join = group.get("join")
        queue = join.get("queue") if isinstance(join, dict) else None
        return queue if isinstance(queue, dict) else {}
    return None


def _meaning(name: str) -> str:
    return next((e.meaning for e in entries() if e.section == _FIGURES and name in e.words), "")


# Markers


def _marked(effective: Table, group: Table, flow: str, step: Step) -> Explained:
    own = step.point == flow
    marker = group.get("marker") if own else None
    if not isinstance(marker, dict):
        edges = [
            e
            for e in effective.get("edges", ())
            if e.get("node") == step.point or e.get("name") == step.point
        ]
        marker = edges[0].get("marker", {}) if edges else {}
    kind = str(marker.get("kind", "marker"))
    policed = step.cause == "policed"
    done = "dropped" if policed else step.verdict.upper()
    what = f"{kind}: {_figures(step.why)}: {done}."
    size = _bytes(effective.get("packet")) if own and group.get("traffic", {}).get("kind") == "bulk" else None
    tokens = step.why.get("tokens")
    if kind != "token_bucket" or tokens is None or size is None:
        return Explained(step, what, ())
    needs = "more than" if marker.get("conforms") == "more_than" else "at least"
    let, held = "to pass" if marker.get("action") == "drop" else "IN", number(tokens, 5)
    what = f"The bucket held {held} B; {let} takes {needs} the packet's {size} B: {done}."
    if step.verdict == "in" or tokens >= size:
        return Explained(step, what, ())
    otherwise = []
    rate = (
        _contract(group, flow) if marker.get("rate") == "the flow's contract" else _rate(marker.get("rate"))
    )
    if rate:
        wait = (size - tokens) * 8 / rate
        otherwise.append(
            f"It would have {'passed' if policed else 'been IN'} {number(1e3 * wait, 3)} ms later,"
            f" with no other packet in between: tokens arrive at {number(rate / 1e3)} kbit/s."
        )
    return Explained(step, what, tuple(otherwise))


def _contract(group: Table, flow: str) -> float | None:
    contract = group.get("contract")
    if isinstance(contract, list):
        index = flow.rpartition(".")[2]
        contract = contract[int(index)] if index.isdigit() and int(index) < len(contract) else None
    return _rate(contract)


def _rate(text: object) -> float | None:
    try:
        return bits_per_second(text) if isinstance(text, str) else None
    except (ValueError, KeyError):
        return None


def _bytes(text: object) -> int | None:
    number_, _, unit = str(text).partition(" ")
    return int(number_) if unit == "B" and number_.isdigit() else None


# Queues


def _queued(queue: Table, step: Step, colour: str | None) -> Explained:
    aqm = str(queue.get("aqm", ""))
    why = step.why
    law = queue.get(str(queue.get("law")))
    if aqm == "virtual_queue" and isinstance(law, Mapping) and step.cause not in ("overflow", "policed"):
        return _queued({**law, "aqm": queue["law"]}, step, colour)
    if step.cause == "overflow":
        return _overflow(queue, step)
    dropped = step.verdict == "drop"
    done = "dropped" if dropped else "marked CE" if step.verdict == "mark" else "admitted"
    if aqm == "pie" and "drop_prob" in why and ("u" in why or "accu_prob" in why):
        return _pie(queue, step, done)
    if aqm == "codel" and "sojourn" in why:
        return _codel(queue, step, done)
    if aqm in ("red", "rio", "wred") and "avg" in why and "p_a" in why:
        return _by_chance(queue, step, colour, done)
    if step.cause == "forced" and "avg" in why:
        avg = _average(why, colour)
        what = f"The average was {number(avg)}, above what its colour is let in at: dropped, without chance."
        curve = _curve(queue, colour, "packets")
        otherwise = (f"A max_th above {number(avg)} would have left it to chance.",) if curve else ()
        return Explained(step, what, otherwise)
    by = f"{aqm}: " if aqm else ""
    cause = f" ({step.cause})" if step.cause else ""
    if aqm == "drop_tail" and not dropped:
        limit = _amount(queue.get("limit"), "packets")
        room = "" if limit is None else f", and {number(limit)} may"
        waited = why.get("packets", 0.0)
        noun = "packet" if waited == 1 else "packets"
        return Explained(step, f"{number(waited)} {noun} waited{room}: {done}.", ())
    return Explained(step, f"{by}{_figures(why)}: {done}{cause}.", ())


def _pie(queue: Table, step: Step, done: str) -> Explained:
    """PIE's test: u < drop_prob, within the bounds of accu_prob (RFC 8033 §4.1, §5.4)."""
    why = step.why
    p, delay = why["drop_prob"], 1e3 * why["qdelay"]
    least, most = 0.85, 8.5
    what = f"PIE's drop probability was {number(p)}, at a queue delay of {number(delay, 4)} ms"
    if "u" in why:
        u = why["u"]
        below = "below" if u < p else "not below"
        otherwise = [] if done == "admitted" else [f"A random number of {number(p)} or more."]
        return Explained(
            step, f"{what}. The random number u = {number(u)} is {below} that: {done}.", tuple(otherwise)
        )
    so_far = f"; with this packet, the probabilities since the last drop come to {number(why['accu_prob'])}"
    if done == "admitted":
        why_not = f", less than {least}" if why["accu_prob"] < least else ""
        return Explained(step, f"{what}{so_far}{why_not}: {done}.", ())
    return Explained(step, f"{what}{so_far}, and from {most} on every packet is hit: {done}.", ())


def _codel(queue: Table, step: Step, done: str) -> Explained:
    """CoDel's: above the target for an interval (RFC 8289 §4, §5.6)."""
    why, target = step.why, queue.get("target")
    waited, behind = number(1e3 * why["sojourn"], 4), number(why.get("backlog", math.nan))
    what = (
        f"It had waited {waited} ms, the target is {target}, and {behind} B waited behind it;"
        f" the count is {number(why.get('count', math.nan))}: {done}."
    )
    # Below the target nothing is dropped, whatever came before.
    otherwise = () if done == "admitted" else (f"A wait of less than {target}.",)
    return Explained(step, what, otherwise)


def _overflow(queue: Table, step: Step) -> Explained:
    waiting = step.why.get("queued", step.why.get("packets"))
    limit = queue.get("limit")
    said = limit.get("is") if isinstance(limit, dict) else None
    of = f" of {said}" if said else ""
    held = "" if waiting is None else f" held {number(waiting)}{of}"
    what = f"The queue{held}: no room, dropped." if held else f"The queue had no room{of}: dropped."
    return Explained(
        step, what, ("A longer limit, or its arrival after the next departure, would have let it in.",)
    )


def _by_chance(queue: Table, step: Step, colour: str | None, done: str) -> Explained:
    """RED's test: u < p_a (Floyd and Jacobson 1993, Fig. 2)."""
    why = step.why
    avg, p_a, p_b = _average(why, colour), why["p_a"], why.get("p_b", math.nan)
    count = why.get("count", math.nan)
    if "u" not in why:
        # No number is drawn where the outcome is certain.
        what = f"The average was {number(avg)}; p_b = {number(p_b)}, p_a = {number(p_a)}: {done} for certain."
        return Explained(step, what, ())
    u = why["u"]
    hit = u < p_a
    what = (
        f"The average was {number(avg)}, which gives p_b = {number(p_b)};"
        f" a count of {number(count)} since the last drop makes it p_a = {number(p_a)}."
        f" The random number u = {number(u)} is {'below' if hit else 'not below'} that: {done}."
    )
    if not hit or step.verdict == "admit":
        return Explained(step, what, ())
    otherwise = [f"A random number of {number(p_a)} or more."]
    most = _most_p_b(p_a, p_b, count, u)
    for unit in ("packets", "bytes"):
        curve = _curve(queue, colour, unit)
        if curve is None or most is None:
            continue
        low, high, max_p = curve
        if not low < avg < high or abs(max_p * (avg - low) / (high - low) - p_b) > _NEAR * max(p_b, _NEAR):
            continue
        whose = _curve_of(queue, colour)
        name = f"{whose.upper()}'s " if whose else ""
        otherwise.append(
            f"{name}max_p of {number(most / p_b * max_p, 3)} or less, instead of {number(max_p)}."
        )
        average = low + most / max_p * (high - low)
        otherwise.append(f"An average of {number(average, 4)} {unit} or less, instead of {number(avg, 4)}.")
        otherwise += _other_colour(queue, colour, why, unit)
        break
    return Explained(step, what, tuple(otherwise))


def _most_p_b(p_a: float, p_b: float, count: float, u: float) -> float | None:
    """The largest p_b with which u would not have been below p_a; None where p_a follows from another law."""
    for base in (1.0, 2.0):
        room = base - count * p_b
        if room > 0 and abs(p_b / room - p_a) <= _NEAR * max(p_a, _NEAR):
            # u = p_b / (base − count·p_b), solved for p_b.
            return base * u / (1 + count * u)
    return None


def _other_colour(queue: Table, colour: str | None, why: Table, unit: str) -> list[str]:
    """The fate of an IN packet in its place."""
    if colour in (None, "in"):
        return []
    curve, weight = _curve(queue, "in", unit), queue.get("w_q")
    name = "avg_in" if "avg_in" in why else "avg"
    if curve is None or not isinstance(weight, (int, float)):
        return []
    # Its own arrival may have been a sample for the average.
    length = why.get("queued_in" if name == "avg_in" else "queued", 0.0)
    avg = max(why[name], why[name] + weight * (length - why[name]))
    if avg < curve[0]:
        least = number(curve[0])
        return [
            f"As an IN packet it would have been admitted: {number(avg)} is below IN's min_th of {least}."
        ]
    return []


def _curve_of(queue: Table, colour: str | None) -> str | None:
    """The colour whose curve holds for this one; None where there is one for all."""
    return next((c for c in _COLOURS.get(colour or "", ()) if isinstance(queue.get(c), dict)), None)


def _average(why: Mapping[str, float], colour: str | None) -> float:
    return why["avg_in"] if colour == "in" and "avg_in" in why else why["avg"]


def _curve(queue: Table, colour: str | None, unit: str) -> tuple[float, float, float] | None:
    """min_th, max_th and max_p of a colour; of the whole queue where colours have none of their own."""
    whose = _curve_of(queue, colour)
    own = queue if whose is None else queue[whose]
    low, high, max_p = _amount(own.get("min_th"), unit), _amount(own.get("max_th"), unit), own.get("max_p")
    if low is None or high is None or not isinstance(max_p, (int, float)) or not low < high or max_p <= 0:
        return None
    return low, high, float(max_p)


def _amount(value: object, unit: str) -> float | None:
    found = value.get(unit) if isinstance(value, dict) else None
    return float(found) if isinstance(found, (int, float)) else None


def _figures(why: Mapping[str, float]) -> str:
    return ", ".join(f"{name} = {number(value)}" for name, value in why.items()) or "no figures"
