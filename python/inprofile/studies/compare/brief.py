"""What to use when, in a few rows: a comparison's advice with today's senders in one, ties as "or".

Of schemes that keep contracts as well under each sender, the simplest is named first, and settings and
figures are its: the one with the fewest settings (keys of its markers and its queue); of as many, the one
whose queue keeps fewer averages; then in the order of the schemes' file. One that is another with a part
added (`_ADDS`) is not named beside it.

`python -m inprofile.studies.compare.brief` prints the words, the table and the caption that README and the
documentation have.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .advice import Advice, Advised, committed
from .schemes import about

HEADS = (
    "If your link carries",
    "use",
    "with these settings",
    "it keeps of what was bought",
    "best effort gets",
)
#: Said before the table.
WORDS = (
    "IN are packets within a contract's rate, OUT those beyond it and all of best effort. T is the"
    " queue that you allow, as time on the link: WRED drops every OUT packet from an average of T on,"
    " drop-tail every packet at T."
)
#: Said below it: how to set it, with one T as an example; how it was compared; what is not in it.
CAPTION = (
    (
        "How to set it",
        "Packets wait at most about T on average: take the wait that you can bear. With T = 48 ms, on"
        " 10 Mbit/s 40 packets of 1,500 bytes, packets wait 20 to 45 ms on average under TSW2CM +"
        " WRED; FQ-CoDel's target is 8 ms. CUBIC fills 99 % of the link if T is at least a quarter of"
        " the round trip and 20 packets, Reno 98 % with a whole round trip and 40. Link and queue"
        " together should hold two packets for each flow: with half a packet, CUBIC's best effort got"
        " 3 % of the link, with two 25 %. RIO and srTCM mark by token buckets, whose depth is said in"
        " round trips at the contract's rate: two for CUBIC and BBR (1 Mbit/s and 60 ms: 15 kB; at"
        " least 10 kB), eight for Prague, 24 for Reno, the queue's wait included (48 with windows of a"
        " hundred packets).",
    ),
    (
        "How it was compared",
        "On 10 Mbit/s (mixed senders: 20), at equal mean queueing delays of 8 to 39 ms, with eight"
        " seeds: flows with contracts of 200 kbit/s to 1 Mbit/s, 60 % of the link together, beside as"
        " many without one; or ten flows with contracts of 800 kbit/s and round trips of 60 ms, or of"
        " 20 to 200 ms. What is kept is the mean over the contracts, each counted up to 100 %. Of"
        " schemes within 2 % of the best, the first named has the fewest settings or, if equal, a"
        " queue that keeps the fewest averages; settings and figures are of that one. The last"
        " column's brackets have the scheme that leaves best effort the most.",
    ),
    (
        "What is not in it",
        "RI+O and ARM are RIO with a part added, which has to be set, too. Where RIO is named they"
        " keep no more, but leave best effort 1 to 7 % of the link more than RIO; ARM breaks contracts"
        " of CUBIC beside BBR. Probe knows no contracts and marks all flows alike. TWAM is for flows"
        " that all have a contract, on a link that is not all sold; its paper's page says what does as"
        " well. Beside best effort it breaks contracts.",
    ),
)
_CLASSIC = "Reno of the ns-2 era"
#: In the words of who has a link.
_LINKS = {
    "Unequal contracts beside best effort": "unequal contracts beside best effort",
    "Unequal round trips, equal contracts": "equal contracts, unequal round trips",
    "Equal round trips, equal contracts": "equal contracts, equal round trips",
}
#: Beside unequal contracts with one kind of sender: `docs/guides/contracts/mixed.toml`.
_MIXED = "Contracts among mixed senders"
#: Where it is as good as any, nothing more is needed.
_PLAIN = "Drop-tail"
#: Averages that a queue keeps, where it is more than one.
_AVERAGES = {"rio": 2, "rio_plus_out": 3}


#: Schemes that are another one, with a part and its settings added.
_ADDS = {"RI+O": "RIO", "ARM": "RIO", "ARD": "RIO"}


@dataclass(frozen=True)
class Brief:
    """A row: what the link carries, which schemes, settings of the first, what it keeps, what others get."""

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
    """Rows for each kind of link: under TCP of old and of today, or one where drop-tail does under both."""
    rows: list[Brief] = []
    told: set[str] = set()
    for when, link in _LINKS.items():
        here = [row for row in advice if row["when"] == when]
        classic = [row for row in here if row["tcp"] == _CLASSIC]
        today = [row for row in here if row["tcp"] != _CLASSIC]
        groups = [("Reno", classic), ("CUBIC, Prague or BBR", today)]
        if classic and today and _PLAIN in _shared(here):
            groups = [("Reno, CUBIC, Prague or BBR", here)]
        for senders, some in groups:
            if some:
                rows.append(_row(f"{link}; senders run {senders}", some, told))
        mixed = [row for row in advice if row["when"] == _MIXED]
        if mixed and len(rows) and when == next(iter(_LINKS)):
            rows.append(_row(f"{link}; some run Reno, some CUBIC, Prague or BBR", mixed, told))
    return rows


def _row(link: str, rows: Sequence[Advice], told: set[str]) -> Brief:
    """One of them; `told`: schemes whose settings stand in a row above, to which this row's are added."""
    shared = _shared(rows)
    if not shared:
        return Brief(link, "none is as good under each", "–", "–", "–")
    first, *others = [_PLAIN] if _PLAIN in shared else shared
    text = next(entry["text"] for entry in about()["schemes"] if entry["title"] == first)
    settings = re.sub(r" \([^()]*\b(19|20)\d\d\b[^()]*\)", "", text)
    if first in told:
        settings = f"{first} as above"
    elif others:
        settings = f"{first}: {_within(settings)}"
    told.add(first)
    use = f"{first} (or {_listed(others)})" if others else first
    if first == _PLAIN:
        margin = f"{100 * rows[0]['margin']:g}\N{NO-BREAK SPACE}%"
        use = f"drop-tail, without markers: no scheme keeps {margin} more"
    chosen = [found[first] for found in map(_good, rows)]
    kept = _span([a["value"]["mean"] for a in chosen])
    return Brief(link, use, settings, kept, _best_effort(chosen, rows))


def _good(row: Advice) -> dict[str, Advised]:
    """The schemes that keep contracts as well as the best, whatever they leave best effort."""
    return {a["scheme"]: a for a in (*row["use"], *row["costlier"])}


def _shared(rows: Sequence[Advice]) -> list[str]:
    """The schemes that are as good in each of `rows`, the simplest first, without those that add to one."""
    good = [_good(row) for row in rows]
    shared = [entry for entry in about()["schemes"] if all(entry["title"] in found for found in good)]
    titles = {entry["title"] for entry in shared}
    entries = [entry for entry in shared if _ADDS.get(entry["title"]) not in titles]
    return [entry["title"] for entry in sorted(entries, key=_simplicity)]


def _simplicity(entry: Mapping[str, Any]) -> tuple[int, int]:
    """How many settings a scheme has, and how many averages its queue keeps: less is simpler."""
    settings = sum(len([*_leaves(entry.get(part, {}))]) for part in ("flows", "edge", "queue"))
    return settings, _AVERAGES.get(entry["queue"]["aqm"], 1)


def _leaves(of: Mapping[str, Any]) -> Iterator[str]:
    """The keys that a marker or a queue is set by; what it is, is none.

    >>> [*_leaves({"aqm": "rio", "limit": "4 T", "in": {"min_th": "T", "max_th": "2 T"}})]
    ['limit', 'min_th', 'max_th']
    """
    for key, value in of.items():
        if isinstance(value, Mapping):
            yield from _leaves(value)
        elif key not in ("aqm", "kind"):
            yield key


def _listed(names: Sequence[str]) -> str:
    """Names with "or" before the last."""
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _within(sentence: str) -> str:
    """A sentence after a colon: what begins with a name keeps its capitals."""
    return sentence if sentence[1:2].isupper() else sentence[:1].lower() + sentence[1:]


def _best_effort(chosen: Sequence[Advised], rows: Sequence[Advice]) -> str:
    """What those without a contract get, and what they would where contracts are broken."""
    shares = [a["best_effort"]["mean"] for a in chosen if "best_effort" in a]
    most = [m for row in rows if (m := row["best_effort_most"]) is not None and "best_effort" in m]
    if not shares or not most:
        return "–"
    top = max(most, key=lambda m: m["best_effort"]["mean"])
    others, kept = (_span([top[what]["mean"]], 0) for what in ("best_effort", "value"))
    return f"{_span(shares, 0)} of the link ({others} under {top['scheme']}, which keeps {kept})"


def _span(values: Sequence[float], digits: int = 1) -> str:
    r"""The least and the greatest as per cents; one where they read alike.

    >>> _span([0.5, 0.51]), _span([0.99911])
    ('50.0 to 51.0\xa0%', '99.9\xa0%')
    """
    low, high = (f"{100 * x:.{digits}f}" for x in (min(values), max(values)))
    return f"{high}\N{NO-BREAK SPACE}%" if low == high else f"{low} to {high}\N{NO-BREAK SPACE}%"


def markdown(rows: Sequence[Brief]) -> str:
    """The words, the rows as a table of Markdown, and the captions."""
    lines = [f"| {' | '.join(cells)} |" for cells in (HEADS, *(row.cells for row in rows))]
    words, *captions = (
        textwrap.fill(text, 125) for text in (WORDS, *(f"**{head}.** {text}" for head, text in CAPTION))
    )
    return "\n".join([words, "", lines[0], "|---" * len(HEADS) + "|", *lines[1:], "", "\n\n".join(captions)])


if __name__ == "__main__":
    import sys

    sys.stdout.write(f"{markdown(brief(committed()))}\n")
