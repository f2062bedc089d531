"""A paper's advice: four sentences for who has not read it, a fifth on today's senders, and one picture.

`advice.toml` in the paper's folder has the sentences, with places for figures, and what must hold for each to
be true. `advice.py` there has `figures(report)`, by name, and `picture(report)`, a chart. So a sentence has
the figures of the runs beside it, and says so where these no longer bear it out. The fifth's are of what is
advised under today's senders (`today`): where that was not run, it is not said.
"""

from __future__ import annotations

import json
import operator
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

from ..metrics.stats import FREE, Bounds, ci95, mean
from ..run.storage import record_lines
from . import Cell
from .entry import PaperError

if TYPE_CHECKING:
    from . import Paper
    from .report import Report

FILE = "advice.toml"
#: Figures of the last whole run, in the paper's folder: for pages that run nothing.
NAME = "advice.json"

#: What the sentences are about, in their order on the page.
HEADINGS = {
    "use": "Use it?",
    "when": "When",
    "settings": "With which settings",
    "change": "What would change the answer",
}
#: The fifth, which not every paper has.
TODAY = "today"
_HOLDS: Mapping[str, Callable[[float, float], bool]] = {"<": operator.lt, ">": operator.gt}


@dataclass(frozen=True)
class Sentence:
    """One of them: what it answers, its text, and which of its conditions these figures do not meet."""

    id: str
    text: str
    unmet: Sequence[str] = ()
    #: Which of its figures need cells that run with `--full` only, and so are of the last run with them.
    kept: Sequence[str] = ()

    @property
    def heading(self) -> str:
        """The question that it answers."""
        return HEADINGS.get(self.id, "With today's senders")

    @property
    def parts(self) -> list[tuple[bool, str]]:
        """Its text in parts, each with whether it is code."""
        return [(i % 2 == 1, part) for i, part in enumerate(self.text.split("`")) if part]


@dataclass(frozen=True)
class Paste:
    """Settings to be taken as they are: for whom, and their lines."""

    title: str
    text: str


@dataclass(frozen=True)
class Advice:
    """What the first screen of a paper's page has."""

    sentences: Sequence[Sentence]
    #: What the picture shows.
    caption: str
    pastes: Sequence[Paste]
    #: The experiment that is advised.
    experiment: Cell
    figures: Mapping[str, float]
    #: A chart's specification.
    picture: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The sentences by what they answer, what of each is not borne out or not of this run; figures."""
        return {
            "sentences": {s.id: s.text for s in self.sentences},
            "unmet": {s.id: list(s.unmet) for s in self.sentences if s.unmet},
            "kept": {s.id: list(s.kept) for s in self.sentences if s.kept},
            "figures": dict(self.figures),
        }


def advice_of(report: Report) -> Advice | None:
    """The advice of a reproduced paper; None if it has none, or if these runs lack a cell that it needs.

    Raises `PaperError`.
    """
    about = read(report.paper)
    if about is None:
        return None
    module = report.paper.module("advice")
    try:
        figures: Mapping[str, float] = {name: float(x) for name, x in module.figures(report).items()}
    except KeyError as lacking:
        if isinstance(lacking.args[0], Cell):
            return None
        raise
    # What rests on cells of `--full` alone is of the last run that had them.
    figures = {**figures, **of_today(report.today)}
    whole = {} if report.full else (committed(report.paper) or ({}, {}))[1]
    kept = {name: x for name, x in whole.items() if name not in figures}
    figures = {**kept, **figures}
    return Advice(
        sentences=[
            replace(
                said, kept=[name.replace("_", " ") for name in _names(about[said.id]["text"]) if name in kept]
            )
            for said in sentences(report.paper, about, figures)
        ],
        caption=_filled(about["caption"], figures),
        pastes=[Paste(p["title"], p["text"].strip()) for p in about.get("pastes", ())],
        experiment=advised(report.paper, about),
        figures=figures,
        picture=module.picture(report),
    )


def of_today(found: Mapping[str, Any] | None) -> dict[str, float]:
    """What is advised under today's senders, of a `today.json`, by the names that the fifth sentence has."""
    made: dict[str, float] = {}
    for row in ((found or {}).get("advised") or {"rows": ()})["rows"]:
        for name, figure in row["senders"].items():
            ends = zip(("_lo", "_hi"), figure["ci95"] or (), strict=False)
            made[f"{row['name']}_{name}"] = figure["mean"]
            made.update({f"{row['name']}_{name}{end}": x for end, x in ends})
    return made


def where_run(figures: Callable[[], Mapping[str, float]]) -> Mapping[str, float]:
    """Figures of cells that some runs lack, such as those without `--full`: none of them then."""
    try:
        return figures()
    except KeyError as lacking:
        if isinstance(lacking.args[0], Cell):
            return {}
        raise


def advised(paper: Paper, about: Mapping[str, Any]) -> Cell:
    """The cell that `experiment` names: set-up, network, scheme, and variant, or sweep and value, if any.

    `first` is the paper's first set-up.
    """
    return cell_at(paper, about["experiment"])


def cell_at(paper: Paper, written: Sequence[str]) -> Cell:
    """A cell as `advice.toml` names it: a fourth word alone is a variant."""
    setup, topology, scheme, *point = written
    variant, point = (point[0], []) if len(point) == 1 else ("", point)
    return Cell(paper.setups[0].id if setup == "first" else setup, topology, scheme, variant, *point)


def known(name: str, values: Iterable[float], bounds: Bounds = FREE) -> dict[str, float]:
    """A mean and the ends of its 95 % interval, as figures that a sentence may give or be held to.

    >>> {name: round(x, 3) for name, x in known("lead", [1.0, 2.0, 3.0]).items()}
    {'lead': 2.0, 'lead_lo': -0.484, 'lead_hi': 4.484}

    Raises ValueError with fewer than two values.
    """
    xs = [float(x) for x in values]
    interval = ci95(xs, bounds)
    if interval is None:
        raise ValueError(f"{name}: an interval needs at least 2 seeds")
    return {name: mean(xs), f"{name}_lo": interval.lo, f"{name}_hi": interval.hi}


def read(paper: Paper) -> dict[str, Any] | None:
    """A paper's `advice.toml` as it is written; None where there is none."""
    place = paper.folder / FILE
    return tomllib.loads(place.read_text("utf-8")) if place.exists() else None


def committed(paper: Paper) -> tuple[dict[str, Any], dict[str, float]] | None:
    """A paper's `advice.toml` and the figures of its last whole run; None where one of them is missing."""
    about, place = read(paper), paper.folder / NAME
    if about is None or not place.exists():
        return None
    figures: dict[str, float] = json.loads(place.read_text("utf-8"))["figures"]
    return {**about, "caption": _filled(about["caption"], figures)}, figures


def write(folder: Path, data: Mapping[str, Any]) -> None:
    """Keep the figures of a run that was not quick, of its `results.json`, in the paper's folder."""
    kept = {"version": data["version"], "seeds": data["seeds"], "figures": data["advice"]["figures"]}
    (folder / NAME).write_text(record_lines(kept), "utf-8")


def sentences(paper: Paper, about: Mapping[str, Any], figures: Mapping[str, float]) -> list[Sentence]:
    """The sentences with these figures in their places. Raises `PaperError` for what does not fit."""
    made = []
    for name in (*HEADINGS, *_fifth(about, figures)):
        try:
            said = about[name]
            unmet = [words for rule in said.get("holds", ()) if (words := _unmet(rule, figures))]
            made.append(Sentence(name, _filled(said["text"], figures), unmet))
        except (KeyError, TypeError, ValueError) as error:
            raise PaperError(f"{paper.folder / FILE}, {name}: {error!r}") from None
    return made


def _fifth(about: Mapping[str, Any], figures: Mapping[str, float]) -> list[str]:
    """The sentence on today's senders, if there is one and any of its figures."""
    text = about[TODAY]["text"] if TODAY in about else ""
    return [TODAY] if any(name in figures for name in _names(text)) else []


def _names(text: str) -> list[str]:
    """The figures that a text has places for."""
    return [name for _, name, _, _ in Formatter().parse(text) if name]


def _unmet(rule: tuple[str, str, float], figures: Mapping[str, float]) -> str:
    """What of a rule, such as `["lead", "<", 0.01]`, these figures do not meet; empty where they do."""
    name, sign, bound = rule
    if _HOLDS[sign](figures[name], bound):
        return ""
    return f"{name.replace('_', ' ')} is {figures[name]:.3g}, not {sign} {bound:g}"


def _filled(text: str, figures: Mapping[str, float]) -> str:
    r"""A text with its figures; per cents with a space, as elsewhere.

    >>> _filled("the index is {fi:.2f}, {more:.0%} more", {"fi": 0.987, "more": 0.123})
    'the index is 0.99, 12\xa0% more'
    """
    return re.sub(r"(?<=\d)%", "\N{NO-BREAK SPACE}%", " ".join(text.split()).format_map(figures))
