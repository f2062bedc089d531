"""Groups of flows as rows: what a flow of each group got on average, over the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .quantity import pm
from .stats import Estimate, estimate
from .summary import SHOWN, bounds_of, heading_of, html_table, text_table, unit_of

if TYPE_CHECKING:
    from .runs import Runs

__all__ = ["Group", "Groups"]

#: What is shown of a group: a flow's figures but its own contract.
COLUMNS = tuple(column for column in SHOWN["flows"] if column != "contract")


@dataclass(frozen=True)
class Group:
    """One group; figures are means over its flows."""

    name: str
    flows: int
    figures: dict[str, Estimate]

    def to_json(self) -> dict[str, Any]:
        """As `inprofile run --json` prints it."""
        return {
            "group": self.name,
            "flows": self.flows,
            **{
                name: {"unit": unit_of(name), "mean": e.mean, "ci95": list(e.ci95 or (None, None)), "n": e.n}
                for name, e in self.figures.items()
            },
        }


class Groups(Sequence[Group]):
    """All groups, in the order of the experiment; shown as a table."""

    def __init__(self, result: Runs) -> None:
        """From the table `flows`."""
        from .measures import by_flow

        table = result.flows
        columns = {c: by_flow(table, result.seeds, c) for c in COLUMNS if c in table.column_names}
        n = table.num_rows // len(result.seeds)
        names = np.asarray([str(g) for g in table.slice(0, n)["group"].to_pylist()], dtype=object)
        self._rows = []
        for group in dict.fromkeys(names):
            own = names == group
            means = {c: x[:, own].mean(axis=1).tolist() for c, x in columns.items()}
            figures = {c: estimate(values, bounds_of(c, values)) for c, values in means.items()}
            self._rows.append(Group(str(group), int(own.sum()), figures))

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows, as text."""
        body = [
            [g.name, str(g.flows), *(pm(e, unit_of(c).removesuffix("packets")) for c, e in g.figures.items())]
            for g in self._rows
        ]
        shown = self._rows[0].figures if self._rows else {}
        return ["group (a flow)", "flows", *map(heading_of, shown)], body

    def __repr__(self) -> str:
        return text_table(*self.table())

    def _repr_html_(self) -> str:
        return html_table(*self.table())
