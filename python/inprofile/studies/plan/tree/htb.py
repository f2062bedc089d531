"""A tree as classes of Linux's HTB (tc-htb(8)), one a node, for the interface where its data begins.

A class has what its node was promised as `rate` and its link's rate as `ceil`, so that what is not used goes
to those beside it. HTB has queues at leaves alone; of a level's discipline only a limit is carried over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....experiment.scenario import Scenario
from ....metrics.quantity import bits_per_second
from .network import TreeError

__all__ = ["classes"]

_LEAST = 1000
"""bit/s of a class below which nothing was promised: HTB has no rate of 0."""


def classes(scenario: Scenario, device: str) -> tuple[str, list[str]]:
    """Lines for `tc -batch`, and what they do not say. Raises TreeError for what HTB cannot have."""
    effective = scenario.check().effective
    trees = effective.get("trees", [])
    if len(trees) != 1:
        count = "no tree" if not trees else f"{len(trees)} trees"
        raise TreeError(
            f"{scenario.file} has {count}: an interface has one: write a file with that one alone"
        )
    (tree,) = trees
    if tree["direction"] != "down":
        raise TreeError(
            f"{scenario.file}: {tree['name']} leads up, and its links begin at many interfaces, each of them"
            " with one rate: HTB is for a tree that leads down from one"
        )
    lines = [f"qdisc replace dev {device} root handle 1: htb"]
    lines += _nodes(scenario.file, effective, tree, device)
    return "\n".join(lines) + "\n", list(_unsaid(effective, tree))


def _links(effective: Mapping[str, Any], level: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    first, nodes = level["links"]["first"], level["links"]["nodes"]
    return list(effective["links"][first : first + 2 * nodes : 2])


def _nodes(file: str, effective: Mapping[str, Any], tree: Mapping[str, Any], device: str) -> Iterator[str]:
    numbers = {tree["root"]: "1:"}
    leaves = tree["levels"][-1]
    for level in tree["levels"]:
        for i, link in enumerate(_links(effective, level)):
            if len(numbers) > 0xFFFF:
                raise TreeError(f"{file}: more than {0xFFFF} nodes: HTB's classes have no numbers beyond")
            numbers[link["name"]] = own = f"1:{len(numbers):x}"
            ceil = bits_per_second(link["rate"])
            if level["contracts"] is not None:
                rate = bits_per_second(level["contracts"][i])
            else:
                rate = ceil if level is tree["levels"][0] else bits_per_second(level["promised"][i])
            rate = max(_LEAST, min(rate, ceil))
            yield f"# {link['name']}"
            yield (
                f"class add dev {device} parent {numbers[link['from']]} classid {own}"
                f" htb rate {rate:.0f}bit ceil {ceil:.0f}bit"
            )
            if level is leaves:
                yield f"qdisc add dev {device} parent {own} {_limit(file, link)}"


def _limit(file: str, link: Mapping[str, Any]) -> str:
    """A leaf's queue. Raises TreeError for a discipline that is more than a limit."""
    queue = link["queue"]
    if (aqm := queue.get("aqm")) != "drop_tail":
        raise TreeError(
            f"{file}: the queue of {link['name']} is {aqm or queue.get('scheduler')}, and Linux has no qdisc"
            ' with the same law: write aqm = "drop_tail" for the export, or let inprofiled serve it'
        )
    limit = queue["limit"]
    if limit["is"].endswith("packets"):
        return f"pfifo limit {limit['packets']:.0f}"
    return f"bfifo limit {limit['bytes']:.0f}"


def _unsaid(effective: Mapping[str, Any], tree: Mapping[str, Any]) -> Iterator[str]:
    for level in tree["levels"][:-1]:
        aqm = _links(effective, level)[0]["queue"].get("aqm", "a scheduler")
        yield f"{aqm} of {level['name']}: HTB has queues at leaves alone, and packets wait there"
    first, groups = tree["flows"]["first"], tree["flows"]["groups"]
    if any(table.get("marker") for table in effective["flows"][first : first + groups]):
        yield "markers of customers: HTB does not mark; inprofiled, or a policer before it, does"
    if any(level["oversubscription"] > 1 for level in tree["levels"]):
        yield "oversubscription: where children's rates exceed their parent's, HTB serves them in proportion"
    yield "who is behind which leaf: add a filter for each, such as an address, with its classid as flowid"
