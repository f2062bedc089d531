"""Results of trees folded: a kind of customers as one group, a level's links as one row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..metrics.measures import by_flow
from ..metrics.quantity import pm
from ..metrics.stats import SHARE, Estimate, estimate
from ..metrics.summary import bounds_of, text_table
from .results import Result

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Level:
    """The links of one level of a tree that data crosses, over the measured window and the seeds."""

    tree: str
    name: str
    links: tuple[str, ...]
    utilisation: Estimate
    """Mean over the links."""
    most: Estimate
    """Of the link that is used most."""
    most_used: str
    """Which that is."""
    loss: Mapping[str, Estimate]
    """By colour (`in`, `out`), the share of the packets that arrived at the level and were dropped."""

    def to_json(self) -> dict[str, Any]:
        """As `inprofile run --json` prints it."""
        return {
            "tree": self.tree,
            "level": self.name,
            "nodes": len(self.links),
            "utilisation": _json(self.utilisation),
            "most_used": {"link": self.most_used, "utilisation": _json(self.most)},
            **{f"loss_{colour}": _json(loss) for colour, loss in self.loss.items()},
        }


def by_kind(result: Result) -> Result:
    """The result with the groups of all leaves of a tree as one: `gold-1-7-3` as `gold`.

    Where two trees, or a tree and the rest of the file, would have a group of one name, the tree's are called
    `isp/gold`.
    """
    import pyarrow as pa

    effective = result.provenance.effective
    trees, tables = effective.get("trees", ()), effective["flows"]
    if not trees:
        return result
    kinds: dict[str, tuple[str, str]] = {}
    for tree in trees:
        first, groups, leaves = (tree["flows"][key] for key in ("first", "groups", "leaves"))
        # The first leaf is the first node of each level.
        path = "-1" * len(tree["levels"])
        own = [table["name"].removesuffix(path) for table in tables[first : first + groups]]
        for i, table in enumerate(tables[first : first + groups * leaves]):
            kinds[table["name"]] = (tree["name"], own[i % groups])
    others = [table["name"] for table in tables if table["name"] not in kinds]
    said = [*others, *(kind for _, kind in dict.fromkeys(kinds.values()))]
    groups_column = result.flows["group"].combine_chunks().dictionary_encode()
    names = []
    for group in groups_column.dictionary.to_pylist():
        tree_name, kind = kinds.get(group, ("", group))
        names.append(f"{tree_name}/{kind}" if tree_name and said.count(kind) > 1 else kind)
    folded = pa.DictionaryArray.from_arrays(groups_column.indices, pa.array(names)).cast(pa.string())
    at = result.flows.column_names.index("group")
    flows = result.flows.set_column(at, "group", folded)
    return Result({**result._tables, "flows": flows}, result.provenance)


def levels(result: Result) -> list[Level]:
    """The levels of the result's trees, from the top."""
    effective = result.provenance.effective
    return [
        _level(result, tree["name"], level["name"], list(_links(effective["links"], level)))
        for tree in effective.get("trees", ())
        for level in tree["levels"]
    ]


def _links(links: Sequence[Mapping[str, Any]], level: Mapping[str, Any]) -> Iterator[str]:
    first, nodes = level["links"]["first"], level["links"]["nodes"]
    return (link["name"] for link in links[first : first + 2 * nodes : 2])


def _level(result: Result, tree: str, name: str, links: list[str]) -> Level:
    import pyarrow as pa
    import pyarrow.compute as pc

    queues = result.queues.filter(pc.is_in(result.queues["queue"], value_set=pa.array(links)))

    def of(column: str) -> NDArray[np.float64]:
        """Seeds × links."""
        return by_flow(queues, result.seeds, column)

    used = of("utilisation")
    most = int(used.mean(axis=0).argmax())
    loss = {}
    for colour in ("in", "out"):
        arrived, dropped = of(f"arrived_{colour}").sum(axis=1), of(f"dropped_{colour}").sum(axis=1)
        if arrived.any():
            shares = np.divide(dropped, arrived, out=np.zeros_like(dropped), where=arrived > 0)
            loss[colour] = estimate(shares.tolist(), SHARE)
    return Level(
        tree,
        name,
        tuple(links),
        _used(used.mean(axis=1)),
        _used(used[:, most]),
        queues["queue"][most].as_py(),
        loss,
    )


def _used(shares: NDArray[np.float64]) -> Estimate:
    values = shares.tolist()
    return estimate(values, bounds_of("utilisation", values))


def level_table(found: Sequence[Level]) -> str:
    """A row a level."""
    shown = [colour for colour in ("in", "out") if any(colour in level.loss for level in found)]
    rows = [
        [
            level.name,
            level.tree,
            str(len(level.links)),
            pm(level.utilisation, ""),
            f"{level.most_used}: {pm(level.most, '')}",
            *(pm(level.loss[colour], "") if colour in level.loss else "–" for colour in shown),
        ]
        for level in found
    ]
    heading = ["level", "tree", "links", "utilisation", "most used", *(f"loss of {c.upper()}" for c in shown)]
    return text_table(heading, rows)


def _json(figure: Estimate) -> dict[str, Any]:
    return {"unit": "1", "mean": figure.mean, "ci95": list(figure.ci95 or (None, None)), "n": figure.n}
