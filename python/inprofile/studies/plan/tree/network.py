"""A tree as a market: kinds of customers, places where more of them can be added, and it with so many.

A tree as classes of Linux's HTB (tc-htb(8)), one a node, for the interface where its data begins. A class
has what its node was promised as `rate` and its link's rate as `ceil`, so that what is not used goes to
those beside it. HTB has queues at leaves alone; of a level's discipline only a limit is carried over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....experiment.dump import document
from ....experiment.scenario import Scenario
from ....metrics.quantity import bits_per_second

ADDED = "more"


class TreeError(ValueError):
    """An experiment of which no such plan can be made; the text says why and what to write."""


@dataclass(frozen=True)
class Kind:
    """A group of flows that each leaf has."""

    name: str
    of_leaf: int
    """How many a leaf has."""
    contract: float | None
    """bit/s of each; None: nothing was promised to them."""


@dataclass(frozen=True)
class Place:
    """A node, below which customers can be added."""

    level: str
    """Its level's name."""
    node: str
    path: str
    """What its name has after the level's: `-1-7`."""
    leaves: tuple[str, ...]
    """The paths of the leaves below."""
    free: float
    """bit/s that the file lets be promised below it beyond what is."""


@dataclass(frozen=True)
class Network:
    """A tree whose contracts are to be kept."""

    scenario: Scenario
    """Without its goal and monitors."""
    name: str
    kinds: tuple[Kind, ...]
    places: tuple[Place, ...]
    """The fullest node of each level by what was promised below it, from the leaves up."""
    levels: Mapping[str, frozenset[str]]
    """The links of each level."""
    kept: float
    """The share of the contracts that is to be kept."""

    def customers(self, kind: Kind, place: Place) -> int:
        """How many of a kind there are below a place."""
        return kind.of_leaf * len(place.leaves)

    def level_of(self, link: str) -> str:
        """The level of a link of this tree; of another link its name."""
        return next((level for level, links in self.levels.items() if link in links), link)

    def below(self, groups: Sequence[str], place: Place) -> list[bool]:
        """Whether each group of flows is below a place; groups outside of the tree are not."""
        names = tuple(f"{kind.name}{more}" for kind in self.kinds for more in ("", f"-{ADDED}"))
        own = {f"{name}{leaf}" for name in names for leaf in place.leaves}
        return [group in own for group in groups]

    def chosen(self, groups: Sequence[str] | None) -> list[Kind]:
        """The kinds of these names, or all with a contract. Raises TreeError for what is none."""
        if groups is None:
            return [kind for kind in self.kinds if kind.contract]
        by_name = {kind.name: kind for kind in self.kinds}
        for group in groups:
            if group not in by_name:
                raise TreeError(
                    f"{self.scenario.file}: {self.name} has no group of flows {group}: write --group with"
                    f" one of {', '.join(by_name)}"
                )
        return [by_name[group] for group in dict.fromkeys(groups)]

    def experiment(self, kind: Kind, place: Place, more: int) -> Scenario:
        """The experiment with so many more of a kind below a place, spread evenly over its leaves."""
        if more == 0:
            return self.scenario
        written = document(self.scenario)
        tree = next(t for t in written["trees"] if t["name"] == self.name)
        table = next(t for t in tree["flows"] if t["name"] == kind.name)
        leaf_level = tree["levels"][-1]["name"]
        each, rest = divmod(more, len(place.leaves))
        flows: list[dict[str, Any]] = []
        for i, leaf in enumerate(place.leaves):
            count = each + (i < rest)
            if count == 0:
                continue
            ends = [tree["root"], f"{leaf_level}{leaf}"]
            source, sink = ends if tree.get("direction", "down") == "down" else reversed(ends)
            added = {**table, "name": f"{kind.name}-{ADDED}{leaf}", "count": count, "to": sink}
            if "join" in table:
                added |= {"from": "H*", "join": {**table["join"], "node": source}}
            else:
                added["from"] = source
            flows.append(added)
        return self.scenario.with_({"flows": [*written.get("flows", []), *flows]})


def paths_below(path: str, leaves: Sequence[str]) -> list[str]:
    """Of leaves those below the node of this path."""
    return [leaf for leaf in leaves if leaf == path or leaf.startswith(f"{path}-")]


def network_of(scenario: Scenario, tree: str | None = None, kept: float | None = None) -> Network:
    """The tree of an experiment, by name where there are several; `kept` takes the place of its `plan.kept`.

    Raises TreeError.
    """
    file, asked = scenario.file, scenario.check().effective.get("plan")
    share = kept if kept is not None else asked["kept"] if asked else 0.99
    if not 0.5 <= share < 1:
        raise TreeError(f"--kept {100 * share:g} %: write a share from 50 % to below 100 %")
    bare = scenario.with_({"plan": {}, "monitors": []})
    effective = bare.check().effective
    trees = {t["name"]: t for t in effective.get("trees", [])}
    if not trees:
        raise TreeError(
            f"{file} has no tree: write [[trees]], or ask `inprofile plan sell {file}` of one link"
        )
    if tree is None and len(trees) > 1:
        raise TreeError(f"{file} has the trees {', '.join(trees)}: write --tree with one of them")
    name = next(iter(trees)) if tree is None else tree
    if name not in trees:
        raise TreeError(f"{file} has no tree {name}: write --tree with one of {', '.join(trees)}")
    found = trees[name]
    first, groups, leaves = (found["flows"][key] for key in ("first", "groups", "leaves"))
    written = next(t for t in document(bare)["trees"] if t["name"] == name)
    tables = effective["flows"]
    kinds = tuple(
        _kind(file, name, own["name"], tables[first + i])
        for i, own in enumerate(written.get("flows", [])[:groups])
    )
    if not any(kind.contract for kind in kinds):
        raise TreeError(
            f"{file}: nothing was promised to the flows of {name}, and nothing can be broken:"
            ' add contract = "500 kbit/s" to a group of its flows'
        )
    paths = [tables[first + groups * i]["name"].removeprefix(kinds[0].name) for i in range(leaves)]
    links = {
        level["name"]: [
            effective["links"][level["links"]["first"] + 2 * i]["name"]
            for i in range(level["links"]["nodes"])
        ]
        for level in found["levels"]
    }
    free = {level["name"]: _free(level) for level in found["levels"]}
    places = []
    for level in reversed(found["levels"]):
        own = free[level["name"]]
        number = own.index(min(own))
        node = links[level["name"]][number]
        path = node.removeprefix(level["name"])
        below = tuple(paths_below(path, paths))
        places.append(Place(level["name"], node, path, below, _room(found["levels"], links, free, path)))
    return Network(
        bare, name, kinds, tuple(places), {level: frozenset(own) for level, own in links.items()}, share
    )


def _kind(file: str, tree: str, name: str, table: Mapping[str, Any]) -> Kind:
    """A kind of customers. Raises TreeError where more of them would not be like those that are there."""
    for key in ("contract", "rtt", "start", "stop"):
        # A range is spread over however many there are, and reads as a list once it is.
        if key != "rtt" and isinstance(table.get(key), list):
            raise TreeError(
                f"{file}: {key} of {name} in {tree} is a list for {table['count']} customers, and others are"
                " added: write one value, or give those that differ a group of their own"
            )
    contract = table.get("contract")
    return Kind(name, table["count"], None if contract is None else bits_per_second(contract))


def _free(level: Mapping[str, Any]) -> list[float]:
    """What may still be promised below each node of a level, in bit/s."""
    has = level["contracts"] or level["rates"]
    return [
        max(0.0, level["oversubscription"] * bits_per_second(h) - bits_per_second(p))
        for h, p in zip(has, level["promised"], strict=True)
    ]


def _room(
    levels: Sequence[Mapping[str, Any]],
    links: Mapping[str, Sequence[str]],
    free: Mapping[str, Sequence[float]],
    path: str,
) -> float:
    """What may still be promised to customers below the node of this path.

    That is the least of what is free at each level on the way up, up to the first at which nodes have bought
    contracts of their own: these count above it, however much of them is sold.
    """
    parts, room = path.split("-"), float("inf")
    for depth, level in reversed(list(enumerate(levels, 1))):
        name, names = level["name"], links[level["name"]]
        above = f"{name}{'-'.join(parts[: depth + 1])}"
        at = [n for n, link in enumerate(names) if link == above or link.startswith(f"{name}{path}-")]
        room = min(room, sum(free[name][n] for n in at))
        if level["contracts"] is not None:
            break
    return room


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
