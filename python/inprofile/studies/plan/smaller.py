"""A smaller network that behaves like the network: where settings are looked for when a run takes long.

Of each group one in k flows stays, and the links have a kth of their rates; round trips, and queues in time,
are those of the network (SHRiNK: Psounis, Pan, Prabhakar and Wischik 2003: where many flows share a link, its
delay and what a flow gets depend on rate a flow, round trips and thresholds in time). Settings keep their
meaning: T is a time, a bucket's depth a time of the contract; a weight that is applied at each packet is
applied k times as rarely, and counts so much more. What is found is tested on the network (`contracts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...experiment.dump import document
from ...metrics.quantity import bits_per_second
from .question import Question

__all__ = ["FEWEST", "LARGE", "scale_of", "smaller"]

LARGE = 500_000
"""Packets of a run above which settings are looked for on a smaller network."""
FEWEST = 4
"""Each group keeps so many flows."""
#: Keys of a group that may be lists with a value for each flow.
_LISTS = ("rtt", "start", "stop", "contract")


def scale_of(question: Question) -> int:
    """One in how many flows the smaller network has; 1 where a run is short, or none can be made."""
    if question.scenario.expected_packets(seeds=1) <= LARGE or not _fits(question):
        return 1
    groups = question.scenario.check().effective["flows"]
    counts: list[int] = [g["count"] for g in groups]
    return max(1, min(counts) // FEWEST)


def _fits(question: Question) -> bool:
    """Whether a limit describes every link's queue, but for the measured link's, which schemes replace."""
    written = document(question.scenario)
    return all(
        "capacity" not in link
        and isinstance(queue := link.get("queue"), Mapping)
        and (link["name"] == question.place.link or queue.get("aqm") == "drop_tail")
        for link in written["links"]
    )


def smaller(question: Question, k: int) -> Question:
    """The same question of a network with one in k flows."""
    if k == 1:
        return question
    effective = question.scenario.check().effective
    values: dict[str, object] = {}
    for group in effective["flows"]:
        count = max(1, round(group["count"] / k))
        values[f"flows.{group['name']}.count"] = count
        for key in _LISTS:
            if isinstance(group[key], list):
                values[f"flows.{group['name']}.{key}"] = _spread(group[key], count)
    fewer = question.of(question.scenario.with_(values))
    # Contracts fill as much of the link as they do: k where all counts are whole multiples.
    ratio = question.bought / fewer.bought
    for link in effective["links"]:
        if "reverse_of" in link:
            continue
        key = f"links.{link['name']}"
        values[f"{key}.rate"] = f"{bits_per_second(link['rate']) / ratio:.0f} bit/s"
        limit = max(2, round(link["queue"]["limit"]["packets"] / ratio))
        values[f"{key}.queue"] = {"aqm": "drop_tail", "limit": f"{limit} packets"}
    return replace(question.of(question.scenario.with_(values)), scale=ratio)


def _spread(values: Sequence[Any], count: int) -> list[Any]:
    """So many of the values, evenly from all of them."""
    return [values[int((i + 0.5) * len(values) / count)] for i in range(count)]
