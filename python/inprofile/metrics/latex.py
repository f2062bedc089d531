"""Tables with their intervals for a paper in LaTeX: booktabs and siunitx.

A column whose intervals are symmetric is written mean ± half the 95 % interval; one in which any is lopsided,
as those of shares and indices are near their bounds, has both ends beside the mean. Not the notation with the
uncertainty in brackets, 0.997(13): by that readers understand a standard uncertainty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .._input import visible
from ..own.engine import __version__
from .flow_figures import Groups
from .quantity import LOPSIDED, number, quantity, scale, together
from .stats import Estimate
from .summary import SHOWN, Rows, heading_of, unit_of

if TYPE_CHECKING:
    from .flow_figures import Runs

_HEAD = "% Written by inprofile"
#: So many columns fit one of a page's two.
_NARROW = 4
_UNITS = {
    "Gbit/s": r"\giga\bit\per\second",
    "Mbit/s": r"\mega\bit\per\second",
    "kbit/s": r"\kilo\bit\per\second",
    "bit/s": r"\bit\per\second",
    "s": r"\second",
    "ms": r"\milli\second",
    "µs": r"\micro\second",
    "GB": r"\giga\byte",
    "MB": r"\mega\byte",
    "kB": r"\kilo\byte",
    "B": r"\byte",
    "%": r"\percent",
}
#: Of mathematics: pdfLaTeX has none of them in text.
_MATHS = {
    "×": "times", "±": "pm", "≥": "geq", "≤": "leq", "≠": "neq", "≈": "approx", "∞": "infty",
    "→": "rightarrow", "←": "leftarrow", "↔": "leftrightarrow",
    "·": "cdot", "∝": "propto", "√": "surd", "∑": "sum",
    "Δ": "Delta", "Σ": "Sigma", "Ω": "Omega", "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta",
    "ε": "varepsilon", "η": "eta", "θ": "theta", "λ": "lambda", "μ": "mu", "π": "pi", "ρ": "rho",
    "σ": "sigma", "τ": "tau", "φ": "varphi", "ω": "omega",
}  # fmt: skip
_SIGNS = str.maketrans(
    {
        **{sign: rf"$\{name}$" for sign, name in _MATHS.items()},
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "&": r"\&",
        "%": r"\%",
        "$": r"\$",
        "#": r"\#",
        "_": r"\_",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        '"': "''",
        "[": "{[}",
        "]": "{]}",
        "–": "--",
        "…": r"\ldots{}",
        "−": "$-$",
        "µ": r"\textmu{}",
    }
)


class Raw(str):
    """A cell that is LaTeX already."""

    __slots__ = ()


@dataclass(frozen=True)
class Column:
    """A column: texts, or figures in one unit."""

    heading: str
    cells: Sequence[Estimate | str | None]
    unit: str = ""
    """The figures' base unit: `bit/s`, `s`, `B`, or a word; empty for a plain number."""
    percent: bool = False
    """Whether shares are written as per cent."""


@dataclass(frozen=True)
class Table:
    """One table: what it shows, and its columns, all of one length."""

    caption: str
    label: str
    columns: Sequence[Column]


def latex(tables: Iterable[Table]) -> str:
    """The tables as a file for a paper to `input`."""
    head = (
        f"{_HEAD} {__version__}. The preamble needs \\usepackage{{booktabs}} and \\usepackage{{siunitx}}"
        " (version 3, of 2021, or newer).\n% A figure is the mean over the seeds with its 95 % confidence"
        " interval: ± half of it, or both ends where it is not symmetric.\n"
    )
    return "\n".join([head, *(_table(table) for table in tables)])


def ours(path: Path) -> bool:
    """Whether a file may be written over: it is not there, or one of these."""
    if not path.exists():
        return True
    with path.open("rb") as file:
        return path.is_file() and file.read(len(_HEAD)) == _HEAD.encode()


def escaped(text: str) -> str:
    r"""A text as LaTeX shows it, whatever is in it.

    >>> print(escaped("50 % of a_b & {c}"))
    50 \% of a\_b \& \{c\}
    """
    return visible(" ".join(text.split()), lines=False).translate(_SIGNS)


def _table(table: Table) -> str:
    made = [_column(column) for column in table.columns]
    width = len(made[0].cells)
    # Across both columns of a paper that has two.
    kind = "table*" if len(made) > _NARROW else "table"
    rows = [" & ".join(column.cells[i] for column in made) for i in range(width)]
    return "\n".join(
        [
            rf"\begin{{{kind}}}",
            r"  \centering",
            r"  \sisetup{separate-uncertainty = true}",
            rf"  \caption{{{escaped(table.caption)}}}",
            rf"  \label{{tab:{_label(table.label)}}}",
            rf"  \begin{{tabular}}{{{' '.join(column.kind for column in made)}}}",
            r"    \toprule",
            rf"    {' & '.join(column.heading for column in made)} \\",
            r"    \midrule",
            *(rf"    {row} \\" for row in rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            rf"\end{{{kind}}}",
            "",
        ]
    )


def _label(text: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in ".:-") else "-" for c in text)


def _shown(cell: object) -> str:
    return cell if isinstance(cell, Raw) else escaped(str(cell))


def with_unit(e: Estimate, unit: str) -> str:
    r"""A figure alone, with its unit.

    >>> from inprofile.metrics.stats import Interval
    >>> print(with_unit(Estimate(464200.0, Interval(459e3, 469.4e3), 10), "bit/s"))
    \qty{464.2 +- 5.2}{\kilo\bit\per\second}
    """
    factor, name = scale(unit, max(abs(e.mean), e.half or 0.0))
    made = _texts(e, factor, _lopsided(e))
    number_ = f"{made.mean} +- {made.half}" if made.half else made.mean
    macro = _UNITS.get(name)
    beside = f" [{made.ends}]" if made.ends else ""
    if macro and not beside:
        return rf"\qty{{{number_}}}{{{macro}}}"
    word = rf"\,\unit{{{macro}}}" if macro else f" {escaped(name)}" if name not in ("", "1") else ""
    return rf"\num{{{number_}}}{beside}{word}"


@dataclass(frozen=True)
class _Made:
    kind: str
    heading: str
    cells: Sequence[str]


def _column(column: Column) -> _Made:
    found = [cell for cell in column.cells if isinstance(cell, Estimate)]
    if not found:
        cells = ["--" if cell is None else _shown(cell) for cell in column.cells]
        return _Made("l", escaped(column.heading), cells)
    size = max(abs(e.mean) for e in found)
    factor, unit = (0.01, "%") if column.percent else scale(column.unit, size)
    if unit == "1":
        unit = ""
    macro = _UNITS.get(unit)
    shown = (rf" (\unit{{{macro}}})" if macro else f" ({escaped(unit)})") if unit else ""
    both = any(_lopsided(e) for e in found)
    texts = [_texts(cell, factor, both) if isinstance(cell, Estimate) else None for cell in column.cells]
    means = [_text(cell, made) for cell, made in zip(column.cells, texts, strict=True)]
    kind = f"S[table-format = {_format([t for t in texts if t])}]"
    if not both:
        return _Made(kind, f"{{{escaped(column.heading)}{shown}}}", means)
    ends = [f"[{t.ends}]" if t and t.ends else "" for t in texts]
    heading = rf"\multicolumn{{2}}{{c}}{{{escaped(column.heading)}{shown}}}"
    cells = [f"{mean} & {end}" for mean, end in zip(means, ends, strict=True)]
    return _Made(f"{kind} @{{\\,}} l", heading, cells)


@dataclass(frozen=True)
class _Texts:
    mean: str
    half: str = ""
    ends: str = ""


def _lopsided(e: Estimate) -> bool:
    if e.ci95 is None or not math.isfinite(e.half or math.inf):
        return False
    low, high = sorted((e.mean - e.ci95.lo, e.ci95.hi - e.mean))
    return high > LOPSIDED * low and high > 0


def _texts(e: Estimate, factor: float, both: bool) -> _Texts:
    half = e.half
    if e.ci95 is None or half is None or not math.isfinite(half) or half == 0:
        return _Texts(number(e.mean / factor))
    decimals = min(8, max(0, 1 - math.floor(math.log10(half / factor))))
    mean, lo, hi = together(*(x / factor for x in (e.mean, *e.ci95)), decimals=decimals)
    if both:
        return _Texts(mean, ends=rf"\num{{{lo}}}, \num{{{hi}}}")
    return _Texts(mean, half=f"{half / factor:.{decimals}f}")


def _text(cell: object, made: _Texts | None) -> str:
    """A cell of a column that siunitx aligns; what is no number is in braces."""
    if made is None:
        return "{--}" if cell is None else f"{{{_shown(cell)}}}"
    if "e" in made.mean:
        return rf"{{\num{{{made.mean}}}}}"
    return f"{made.mean} +- {made.half}" if made.half else made.mean


def _format(texts: Sequence[_Texts]) -> str:
    """How many digits siunitx leaves room for: before the point, behind it, of the uncertainty.

    >>> _format([_Texts("464.2", "5.2"), _Texts("-3.25", "0.13")])
    '-3.2(2)'
    """
    plain = [t.mean for t in texts if "e" not in t.mean] or ["0"]
    before = max(len(mean.lstrip("-").partition(".")[0]) for mean in plain)
    behind = max(len(mean.partition(".")[2]) for mean in plain)
    digits = max(len(t.half.replace(".", "").lstrip("0")) for t in texts)
    sign = "-" if any(mean.startswith("-") for mean in plain) else ""
    return f"{sign}{before}.{behind}{f'({digits})' if digits else ''}"


#: Up to this many flows are told one by one; beyond that, by group.
_MOST_FLOWS = 12


def tables_of(title: str, result: Runs) -> Iterator[Table]:
    """A result's tables: its metrics, and its flows or groups of flows."""
    n = len(result.seeds)
    seeds = f"Mean and 95 % confidence interval of {n} seeds." if n > 1 else "One seed."
    metrics = list(result.summary().values())
    yield Table(
        f"{title}: metrics. {seeds}",
        "metrics",
        [
            Column("metric", [m.name.replace("_", " ") for m in metrics]),
            Column("", [Raw(with_unit(m.estimate, m.unit)) for m in metrics]),
        ],
    )
    names, contracts, figures = _flows(result)
    columns = [Column("", names)]
    if any(c is not None for c in contracts):
        shown = [None if c is None else quantity(c, "bit/s") for c in contracts]
        columns.append(Column("contract", shown))
    for name in SHOWN["flows"]:
        if any(name in of for of in figures):
            columns.append(Column(heading_of(name), [of.get(name) for of in figures], unit_of(name)))
    yield Table(f"{title}: what flows got. {seeds}", "flows", columns)


def _flows(result: Runs) -> tuple[list[str], list[float | None], list[Mapping[str, Estimate]]]:
    rows = Rows("flows", result.flows)
    if len(rows) <= _MOST_FLOWS:
        each = list(rows)
        return (
            [r.keys["flow"] for r in each],
            [r.given.get("contract") for r in each],
            [r.figures for r in each],
        )
    groups = list(Groups(result))
    names = [f"{g.name}, a flow of {g.flows}" for g in groups]
    return names, [None] * len(groups), [g.figures for g in groups]
