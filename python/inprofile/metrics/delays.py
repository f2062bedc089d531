"""Distributions of delays over the seeds: what `measure.distributions` asks for, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .quantity import pm
from .stats import POSITIVE, Estimate, estimate
from .summary import html_table, text_table

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FIGURES", "Delay", "Delays"]

FIGURES = ("mean", "p50", "p90", "p99", "p99_9", "max")
"""The columns of a distribution; all in seconds."""

_HEADINGS = {"p99_9": "p99.9"}


@dataclass(frozen=True)
class Delay:
    """One distribution: each figure's value by seed, in seconds."""

    measure: str
    """`queueing_delay`, `one_way_delay`, `excess_delay`, `delay_variation` or `loss_interval`."""
    point: str
    """A link, `receivers`, or a class of either, such as `bottleneck/af` and `receivers/af`."""
    group: str | None
    """The group of flows; None: all."""
    colour: str | None
    """`in`, `out` or `red`; None: all. Where all are of one colour there is no other row."""
    values: Mapping[str, Sequence[float]]
    """By figure: `count`, `min`, and those of `FIGURES`."""

    def __getitem__(self, figure: str) -> Estimate:
        """Mean over the seeds with its 95 % interval."""
        return estimate(self.values[figure], POSITIVE)

    @property
    def name(self) -> str:
        """Its subject, in words."""
        parts = [self.measure.replace("_", " "), self.point if self.point != "receivers" else "", self.group]
        of = [part for part in parts if part] + ([self.colour.upper()] if self.colour else [])
        return ", ".join(of)

    def to_json(self) -> dict[str, Any]:
        """As `inprofile run --json` prints it."""
        figures = {}
        for name, values in self.values.items():
            found = self[name]
            figures[name] = {
                "unit": "1" if name == "count" else "s",
                "mean": found.mean,
                "ci95": list(found.ci95 or (None, None)),
                "n": found.n,
                "values": list(values),
            }
        return {
            "measure": self.measure,
            "point": self.point,
            "group": self.group,
            "colour": self.colour,
            **figures,
        }


class Delays(Sequence[Delay]):
    """Every distribution of a result; shown as a table."""

    def __init__(self, table: pa.Table) -> None:
        """From a result's table `delays`."""
        rows: dict[tuple[str, str, str | None, str | None], dict[str, list[float]]] = {}
        for row in table.to_pylist():
            key = (row["measure"], row["point"], row["group"], row["colour"])
            found = rows.setdefault(key, {name: [] for name in ("count", "min", *FIGURES)})
            for name, values in found.items():
                values.append(float(row[name]))
        self._rows = [Delay(*key, values) for key, values in rows.items()]

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Delay]:
        return iter(self._rows)

    def find(
        self, measure: str, point: str | None = None, group: str | None = None, colour: str | None = None
    ) -> Delay | None:
        """The distribution of this measure, point (None: whichever is first), group and colour."""
        for row in self:
            if (row.measure, row.group, row.colour) == (measure, group, colour) and point in (
                None,
                row.point,
            ):
                return row
        return None

    def table(self, wanted: Sequence[Delay] | None = None) -> tuple[list[str], list[list[str]]]:
        """Heading and rows, as text."""
        body = [
            [row.name, *(pm(row[figure], "s") for figure in FIGURES)]
            for row in (self._rows if wanted is None else wanted)
        ]
        return ["delays", *(_HEADINGS.get(figure, figure) for figure in FIGURES)], body

    def __repr__(self) -> str:
        return text_table(*self.table())

    def _repr_html_(self) -> str:
        return html_table(*self.table())
