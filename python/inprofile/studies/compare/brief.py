"""What to use when, in a few rows: a comparison's advice with today's senders in one, ties as "or".

`python -m inprofile.studies.compare.brief` prints the table that README and the documentation have.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .advice import Advice, Advised, committed
from .schemes import about

__all__ = ["HEADS", "Brief", "brief", "markdown"]

HEADS = (
    "If your link carries",
    "use",
    "with these settings (T: the queueing delay that you allow)",
    "it keeps of what was bought",
    "best effort gets",
)
_CLASSIC = "Reno of the ns-2 era"
#: In the words of who has a link.
_LINKS = {
    "Unequal contracts beside best effort": "unequal contracts beside best effort",
    "Unequal round trips, equal contracts": "equal contracts, unequal round trips",
    "Equal round trips, equal contracts": "equal contracts, equal round trips",
}
#: Where it is as good as any, nothing more is needed.
_PLAIN = "Drop-tail"


@dataclass(frozen=True)
class Brief:
    """A row: what the link carries, which schemes, settings of the first, what it keeps, what others pay."""

    link: str
    use: str
    settings: str
    keeps: str
    best_effort: str

    @property
    def cells(self) -> tuple[str, ...]:
        """The row in the order of `HEADS`."""
        return (self.link, self.use, self.settings, self.keeps, self.best_effort)


def brief(advice: Sequence[Advice]) -> list[Brief]:
    """Rows for each kind of link, under TCP of old and of today: schemes as good under each sender."""
    rows = []
    for when, link in _LINKS.items():
        here = [row for row in advice if row["when"] == when]
        for senders, some in (
            ("Reno", [row for row in here if row["tcp"] == _CLASSIC]),
            ("CUBIC, Prague or BBR", [row for row in here if row["tcp"] != _CLASSIC]),
        ):
            if some:
                rows.append(_row(f"{link}; senders run {senders}", some))
    return rows


def _row(link: str, rows: Sequence[Advice]) -> Brief:
    good = [{a["scheme"]: a for a in (*row["use"], *row["costlier"])} for row in rows]
    names = [entry["title"] for entry in about()["schemes"]]
    shared = [name for name in names if all(name in found for found in good)]
    # Of schemes that keep contracts as well, first those that leave others as much as any of them.
    left = {name: sum(_left(found[name]) for found in good) / len(good) for name in shared}
    near = max(left.values(), default=0.0) - rows[0]["margin_best_effort"]
    shared.sort(key=lambda name: left[name] < near)
    if _PLAIN in shared:
        use = f"{_PLAIN}: no scheme keeps {100 * rows[0]['margin']:g} % more" if len(shared) > 1 else _PLAIN
        shared = [_PLAIN]
    else:
        use = " or ".join([", ".join(shared[:-1]), shared[-1]] if len(shared) > 1 else shared)
    text = next((e["text"] for e in about()["schemes"] if shared and e["title"] == shared[0]), "–")
    settings = re.sub(r" \([^()]*\b(19|20)\d\d\b[^()]*\)", "", text)
    chosen = [found[name] for found in good for name in shared]
    return Brief(
        link,
        use or "none is as good under each",
        f"{shared[0]}: {_within(settings)}" if len(shared) > 1 else settings,
        _span([a["value"]["mean"] for a in chosen]),
        _best_effort(chosen, rows),
    )


def _within(sentence: str) -> str:
    """A sentence after a colon: what begins with a name keeps its capitals."""
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def _left(scheme: Advised) -> float:
    """The share of the link that best effort gets; 0 where there is none."""
    return scheme["best_effort"]["mean"] if "best_effort" in scheme else 0.0


def _best_effort(chosen: Sequence[Advised], rows: Sequence[Advice]) -> str:
    """What those without a contract get, and what they would where contracts are broken."""
    shares = [a["best_effort"]["mean"] for a in chosen if "best_effort" in a]
    most = [row["best_effort_most"] for row in rows if row["best_effort_most"] is not None]
    if not shares:
        return "–"
    broken = [m for m in most if "best_effort" in m]
    top = max(broken, key=lambda m: m["best_effort"]["mean"])
    others, kept = (_span([top[what]["mean"]], 0) for what in ("best_effort", "value"))
    return (
        f"{_span(shares, 0)} of the link (at most {others}, with contracts kept to {kept}: {top['scheme']})"
    )


def _span(values: Sequence[float], digits: int = 1) -> str:
    r"""The least and the greatest as per cents; one where they read alike.

    >>> _span([0.5, 0.51]), _span([0.99911])
    ('50.0 to 51.0\xa0%', '99.9\xa0%')
    """
    low, high = (f"{100 * x:.{digits}f}" for x in (min(values), max(values)))
    return f"{high}\N{NO-BREAK SPACE}%" if low == high else f"{low} to {high}\N{NO-BREAK SPACE}%"


def markdown(rows: Sequence[Brief]) -> str:
    """The rows as a table of Markdown."""
    lines = [f"| {' | '.join(cells)} |" for cells in (HEADS, *(row.cells for row in rows))]
    return "\n".join([lines[0], "|---" * len(HEADS) + "|", *lines[1:]])


if __name__ == "__main__":
    import sys

    sys.stdout.write(f"{markdown(brief(committed()))}\n")
