"""A suite's tables for a paper: each scenario's contestants, with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...metrics.latex import Column, Table
from .measure import per_cent, title, unit
from .outcome import Entry, Suite
from .scenarios import Definition
from .tables import variant_title

__all__ = ["tables_of"]


def tables_of(suite: Suite) -> Iterator[Table]:
    """A table for each scenario and variant; where one parameter is varied, for each measure.

    The settings of the sensitivity scenario have none: they are ranges, not means.
    """
    for definition in suite.plan.definitions:
        if definition.matrix is not None:
            yield from _matrix(suite, definition)
        elif definition.control:
            yield from _control(suite, definition)
        elif not definition.sensitivity:
            for variant in definition.variants:
                if entries := suite.entries(definition, variant):
                    names = [_names(suite, entries)]
                    more = variant_title(suite, definition, variant)
                    yield _table(suite, definition, variant, more, names, entries)


def _table(
    suite: Suite,
    definition: Definition,
    variant: str,
    more: str,
    first: Sequence[Column],
    entries: Sequence[Entry],
) -> Table:
    measures = [m for m in definition.measures if any(m in e for e in entries)]
    return Table(
        _caption(suite, definition, more),
        _label(suite, definition, variant),
        [*first, *(_figures(title(m), m, entries) for m in measures)],
    )


def _names(suite: Suite, entries: Sequence[Entry]) -> Column:
    return Column("", [suite.title(e.cell.contestant) for e in entries])


def _figures(heading: str, measure: str, entries: Sequence[Entry | None]) -> Column:
    cells = [e[measure] if e is not None and measure in e else None for e in entries]
    return Column(heading, cells, unit(measure), per_cent(measure))


def _control(suite: Suite, definition: Definition) -> Iterator[Table]:
    by = {v: {e.cell.contestant: e for e in suite.entries(definition, v)} for v in definition.variants}
    there = [c for c in suite.plan.contestants if any(c.id in found for found in by.values())]
    for measure in definition.measures:
        columns = [_figures(f"× {v}", measure, [found.get(c.id) for c in there]) for v, found in by.items()]
        if there:
            first = Column("", [c.title for c in there])
            yield Table(
                _caption(suite, definition, title(measure)),
                _label(suite, definition, measure),
                [first, *columns],
            )


def _matrix(suite: Suite, definition: Definition) -> Iterator[Table]:
    assert definition.matrix is not None  # noqa: S101 (whoever asks has looked)
    pairs: dict[tuple[str, str], list[tuple[str, str, Entry]]] = {}
    for point in definition.matrix.points():
        for entry in suite.entries(definition, point.name):
            pairs.setdefault((point.a, point.b), []).append((point.rate, point.rtt, entry))
    order = {c.id: n for n, c in enumerate(suite.plan.contestants)}
    for (a, b), found in pairs.items():
        found.sort(key=lambda one: order[one[2].cell.contestant])
        entries = [entry for _, _, entry in found]
        first = [
            _names(suite, entries),
            Column("rate", [rate for rate, _, _ in found]),
            Column("round trip", [rtt for _, rtt, _ in found]),
        ]
        senders = " beside ".join(suite.plan.about.senders[name].title for name in (a, b))
        yield _table(suite, definition, f"{a}-{b}", senders, first, entries)


def _caption(suite: Suite, definition: Definition, more: str) -> str:
    of = f"{definition.heading}, {more}" if more else definition.heading
    seeds = suite.plan.seeds
    shown = f"Mean and 95 % confidence interval of {seeds} seeds." if seeds > 1 else "One seed."
    return f"{of}. {definition.text} {shown}"


def _label(suite: Suite, definition: Definition, more: str) -> str:
    return "-".join(part for part in (suite.plan.about.name, definition.id, more) if part)
