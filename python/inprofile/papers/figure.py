"""A chart on a paper's page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A chart by its name among the page's, what it shows, and what is said of it."""

    chart: str
    #: Of what: a set-up, a number of flows, a scheme.
    what: str
    #: Which figure of the paper, or what is drawn.
    title: str = ""
    #: Figures beside it, as a sentence or part of one.
    words: str = ""


@dataclass(frozen=True)
class Panels:
    """Charts that stand side by side under a heading."""

    title: str
    panels: list[Figure]
