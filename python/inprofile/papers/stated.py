"""Claims judged from data alone: each with the `comparisons` that its paper's file states.

    [[claims]]
    id = "B1"
    text = "BBR gets more than CUBIC at a short buffer."
    comparisons = [
      { measure = "bbr.goodput / cubic.goodput", of = "one-each", side = "above", than = 1, least = 0.1,
        why = "a tenth: less nobody would notice" },
    ]

`of` is a scheme; `on` a network, or several (default: all). `than` is the value to be compared with (default
0; 1 of a ratio), `to` the upper bound of `side = "within"`. `against` makes it a paired difference with
another scheme (`of`), on another network (`on`), of another measure, or their ratio (`by = "ratio"`). `least`
is the smallest effect worth the name, `why` its reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from ..metrics.measures import Measures
from ..metrics.stats import FREE, SHARE, Bounds
from . import Cell, Paper
from .arithmetic import ArithmeticProblem, value_of
from .claim import Comparison, Effect, Finding, Number, paired, ratios
from .entry import Entry, PaperError


def findings(paper: Paper, cells: Mapping[Cell, Any], variant: str = "") -> list[Finding]:
    """What was measured about every claim that states its comparisons, set-up by set-up."""
    return [
        Finding(
            claim.id,
            setup.id,
            [
                _comparison(paper, entry, cells, setup.id, topology, variant)
                for entry in claim.tables("comparisons")
                for topology in _on(paper, entry)
            ],
            list(_numbers(paper, claim, cells, setup.id, variant)),
        )
        for setup in paper.setups
        for claim in paper.claims
        if "comparisons" in claim and (not variant or _ran(cells, variant))
    ]


def rests_on(paper: Paper, claim: str, cell: Cell) -> bool:
    """Whether a claim compares this cell; of a claim without comparisons, every cell counts."""
    entry = paper.find("claims", claim)
    if "comparisons" not in entry:
        return True
    for c in entry.tables("comparisons"):
        for topology in _on(paper, c):
            if (cell.topology, cell.scheme) in _places(c, topology):
                return True
    return False


def _on(paper: Paper, entry: Entry) -> list[str]:
    return entry.listed("on") or [t.id for t in paper.topologies]


def _places(entry: Entry, topology: str) -> list[tuple[str, str]]:
    """The network and scheme of either side."""
    found = [(topology, entry.word("of"))]
    if "against" in entry:
        other = entry.table("against")
        found.append((other.word("on", topology), other.word("of", entry.word("of"))))
    return found


def _ran(cells: Mapping[Cell, Any], variant: str) -> bool:
    return any(cell.variant == variant for cell in cells)


def _values(entry: Entry, key: str, measure: str, cell: Measures) -> Any:
    try:
        return value_of(measure, cell.values) + 0 * cell.values[next(iter(cell.values))]
    except ArithmeticProblem as error:
        raise PaperError(f"{entry.place(key)}: {error}") from None


def _comparison(
    paper: Paper, entry: Entry, cells: Mapping[Cell, Any], setup: str, topology: str, variant: str
) -> Comparison:
    """One comparison, with the values of a set-up's runs."""
    measure, title = entry.word("measure"), paper.find("schemes", entry.word("of")).title
    places = [Cell(setup, t, s, variant) for t, s in _places(entry, topology)]
    first = cells[places[0]]
    ours = _values(entry, "measure", measure, first)
    label = f"{_said(paper, measure)}, {title}"
    null, values = entry.number("than", 0.0), [float(x) for x in ours]
    if "against" in entry:
        other = entry.table("against")
        second = cells[places[1]]
        named = other.word("measure", measure)
        theirs = _values(other, "measure", named, second)
        a, b = (Measures(m.seeds, {"": x}, {}) for m, x in ((first, ours), (second, theirs)))
        ratio = other.word("by", "difference") == "ratio"
        try:
            values = ratios(a, b, "") if ratio else paired(a, b, "")
        except ValueError as error:
            raise PaperError(f"{entry.place('against')}: {error}") from None
        null = entry.number("than", 1.0 if ratio else 0.0)
        place = paper.find("topologies", places[1].topology).title if "on" in other else ""
        words = [
            *([_said(paper, named)] if named != measure else []),
            paper.find("schemes", places[1].scheme).title,
            *([place] if place else []),
        ]
        label += f" {'/' if ratio else '−'} {', '.join(words)}"
    effect = Effect(entry.number("least"), entry.word("why")) if "least" in entry else None
    return Comparison(
        entry.word("label", label),
        values,
        cast('Literal["above", "below", "within"]', entry.word("side")),
        null,
        entry.word("unit", _unit(paper, measure) if "against" not in entry or not ratio else ""),
        paper.find("topologies", topology).title,
        upper=entry.number("to") if "to" in entry else float("inf"),
        effect=effect,
    )


def _measure_entry(paper: Paper, name: str) -> Entry | None:
    return next((m for m in paper.top.tables("computed") if m.id == name), None)


def _said(paper: Paper, name: str) -> str:
    found = _measure_entry(paper, name)
    return name if found is None else found.title


def _unit(paper: Paper, name: str) -> str:
    found = _measure_entry(paper, name)
    return "" if found is None else found.word("unit", "")


def bounds_of(paper: Paper, name: str) -> Bounds:
    """What a measure's values cannot leave."""
    found = _measure_entry(paper, name)
    return SHARE if name == "fi" or (found is not None and found.flag("share")) else FREE


def _numbers(
    paper: Paper, claim: Entry, cells: Mapping[Cell, Any], setup: str, variant: str
) -> Iterator[Number]:
    for n in claim.tables("numbers"):
        cell = cells[Cell(setup, n.word("topology"), n.word("scheme"), variant)]
        measure = n.word("measure")
        yield Number(
            f"{_said(paper, measure)}, {paper.find('schemes', n.word('scheme')).title}",
            [float(x) for x in _values(n, "measure", measure, cell)],
            n.number("value"),
            n.where,
            _unit(paper, measure),
            paper.find("topologies", n.word("topology")).title,
            bounds_of(paper, measure),
        )
