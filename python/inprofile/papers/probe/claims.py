"""How paper C's claims are measured and judged: frontiers, shares and losses, paired by seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ...judge import Comparison, Finding, Number
from .. import Cell, Paper
from ..measures import Array, Measures
from .experiments import SETUP, swept
from .frontiers import Frontier, log_ratio

__all__ = ["Cells", "Runs", "findings", "table"]

Cells = Mapping[Cell, Measures]

#: C2: what the paper says of the share of IN packets, least and greatest over thresholds, and its tolerance.
SHARES = {"ten": (0.98, 0.99), "forty": (0.94, 0.97)}
POINT = 0.01
#: C6: goodputs that differ by less than a tenth are alike.
ALIKE = 0.9
#: C8: the studies with UDP that are compared, at the thresholds they share.
UDP = ("udp-0.05", "udp-1", "udp-5")


class Runs:
    """The measures of a paper's studies, by what they are asked for."""

    def __init__(self, cells: Cells) -> None:
        """`cells` as they were run."""
        self._points: dict[tuple[str, str, str], dict[int, Measures]] = {}
        for cell, measures in cells.items():
            key = (cell.sweep, cell.topology, cell.scheme)
            self._points.setdefault(key, {})[int(cell.value)] = measures

    def points(self, study: str, topology: str, scheme: str) -> dict[int, Measures]:
        """Measures by threshold. Raises `KeyError`."""
        return self._points[study, topology, scheme]

    def frontier(self, study: str, topology: str, scheme: str) -> Frontier:
        """The same as a frontier; the baseline of studies that have none of their own is the common one."""
        if (study, topology, scheme) not in self._points:
            study = "frontier"
        return Frontier.of(self.points(study, topology, scheme))

    def __contains__(self, key: tuple[str, str, str]) -> bool:
        return key in self._points

    def keys(self) -> list[tuple[str, str, str]]:
        """Study, topology and scheme of everything that was run."""
        return list(self._points)


def _per_seed(values: Array) -> list[float]:
    """Mean over thresholds: thresholds × seeds to one a seed."""
    return [float(x) for x in values.mean(axis=0)]


class _Judge:
    """Comparisons of one number of flows."""

    def __init__(self, runs: Runs, topology: Mapping[str, Any]) -> None:
        self.runs, self.id, self.title = runs, topology["id"], topology["title"]

    def frontier(self, scheme: str, study: str = "frontier") -> Frontier:
        return self.runs.frontier(study, self.id, scheme)

    def ratio(
        self, a: str, b: str = "none", study: str = "frontier", name: str = "delay", lowest: int = 10
    ) -> list[float] | None:
        return log_ratio(self.frontier(a, study), self.frontier(b, study), name, lowest)

    def compare(
        self, label: str, values: Sequence[float] | None, side: Literal["above", "below"], null: float = 0.0
    ) -> Comparison:
        """A comparison; frontiers without a common goodput cannot be compared."""
        if values is None:
            count = self.frontier("none")["goodput"].shape[1]
            why = "the two frontiers have no goodput in common in every seed"
            return Comparison(label, [null] * count, side, null, topology=self.title, obstacle=why)
        return Comparison(label, values, side, null, topology=self.title)

    def difference(self, name: str, scheme: str, study: str, base: str) -> list[float]:
        """A measure in one study less in another, mean over the thresholds that both have."""
        ours, theirs = (self.runs.points(s, self.id, scheme) for s in (study, base))
        common = [at for at in ours if at in theirs]
        return _per_seed(np.stack([ours[at][name] - theirs[at][name] for at in common]))

    def over_free(self, scheme: str) -> list[float]:
        """Two domains: goodput of a marked flow over that of a free one, mean over thresholds."""
        f = self.frontier(scheme, "two-domains")
        return _per_seed(f["goodput_marked"] / f["goodput_free"])

    def reach(
        self, label: str, a: str, b: str, side: Literal["above", "below"], study: str = "frontier"
    ) -> Comparison:
        """The most goodput that any threshold gives, of one scheme less another."""
        ours, theirs = (f["goodput"].max(axis=0) for f in (self.frontier(a, study), self.frontier(b)))
        values = [float(x) for x in ours - theirs]
        return Comparison(label, values, side, unit="bit/s", topology=self.title)

    def within(self, label: str, values: Sequence[float], low: float, high: float) -> Comparison:
        return Comparison(label, values, "within", low, topology=self.title, upper=high)


def _minus(a: Sequence[float] | None, b: Sequence[float] | None) -> list[float] | None:
    return None if a is None or b is None else [x - y for x, y in zip(a, b, strict=True)]


def _c1(js: list[_Judge]) -> Iterator[Comparison]:
    for j in js:
        for how in ("soft", "hard"):
            yield j.compare(f"ln(delay, probe / all IN) at equal goodput, {how}", j.ratio(how), "below")
        more = _minus(j.ratio("hard"), j.ratio("soft"))
        yield j.compare("the same, hard less soft", more, "below")
    ten, forty = js
    for how in ("soft", "hard"):
        more = _minus(forty.ratio(how), ten.ratio(how))
        yield forty.compare(f"the same, 40 flows less 10, {how}", more, "below")


def _c2(js: list[_Judge]) -> Iterator[Comparison]:
    for j in js:
        low, high = SHARES[j.id]
        for how in ("soft", "hard"):
            share = j.frontier(how)["share_in"]
            for word, values, at in (
                ("least", share.min(axis=0), low),
                ("greatest", share.max(axis=0), high),
            ):
                label = f"{word} share of IN packets over the thresholds, {how}"
                yield j.within(label, [float(x) for x in values], at - POINT, min(1.0, at + POINT))


def _c3(js: list[_Judge]) -> Iterator[Comparison]:
    # Fig. 7 is of 10 flows; high goodput: the highest thresholds.
    j = js[0]
    last = j.frontier("hard").points[-1]
    yield j.compare("loss of OUT packets at the highest thresholds", list(last["loss_out"]), "above", 0.9)
    yield j.compare("loss of IN packets at the highest thresholds", list(last["loss_in"]), "below", 0.01)


def _c4(js: list[_Judge]) -> Iterator[Comparison]:
    j = js[0]
    one, two = j.ratio("soft-one"), j.ratio("soft")
    if one is None or two is None:
        yield j.compare("delay cut by A+1 over that by 2A+1, soft", None, "above")
    else:
        cuts = [np.expm1(a) / np.expm1(b) for a, b in zip(one, two, strict=True)]
        yield j.within("delay cut by A+1 over that by 2A+1, soft", cuts, 1.5, 2.5)
    for scheme, words, low, high in (("soft-one", "A+1", 0.15, 0.3), ("soft", "2A+1", 0.5, 0.6)):
        losses = _per_seed(j.frontier(scheme)["loss_out"])
        yield j.within(f"loss of OUT packets, {words}, soft, mean over thresholds", losses, low, high)
    worse = j.ratio("hard-one", "hard")
    yield j.compare("ln(delay, A+1 / 2A+1) at equal goodput, hard", worse, "above")
    yield j.reach("greatest goodput, A+1 less 2A+1, hard", "hard-one", "hard", "below")


def _c5(js: list[_Judge]) -> Iterator[Comparison]:
    for j in js:
        for how in ("soft", "hard"):
            f = j.frontier(how, "free-in")
            # Half are marked, half free: the fair share is the mean of both groups' means.
            share = f["goodput_marked"] / ((f["goodput_marked"] + f["goodput_free"]) / 2)
            yield j.compare(f"a marked flow's share of the fair share, {how}", _per_seed(share), "below", 0.2)


def _c6(js: list[_Judge]) -> Iterator[Comparison]:
    for j in js:
        for scheme, words in (("out-30-90", "OUT 30, 90, 0.2"), ("out-2-6", "OUT 2, 6, 0.2")):
            yield j.within(
                f"goodput of marked over free flows, {words}", j.over_free(scheme), ALIKE, 2 - ALIKE
            )
        label = "goodput of marked over free flows, OUT 0.1, 0.3, 1"
        yield j.compare(label, j.over_free("out-0.1-0.3"), "below", ALIKE)


def _numbers(claim: str, js: list[_Judge]) -> Iterator[Number]:
    """What the paper prints: for C6 the milder of "from two to three times"."""
    if claim == "C6":
        for j in js:
            label = "marked over free flows, OUT 0.1, 0.3, 1"
            yield Number(label, j.over_free("out-0.1-0.3"), 1 / 2, "§4.2", topology=j.title)


def _c7(js: list[_Judge]) -> Iterator[Comparison]:
    helped = {
        ("ten", "hard"): UDP,
        ("forty", "hard"): UDP,
        ("ten", "soft"): UDP[:1],
        ("forty", "soft"): UDP[:2],
    }
    for j in js:
        for how in ("hard", "soft"):
            for study in helped[j.id, how]:
                period = study.removeprefix("udp-")
                label = f"ln(delay, probe / all IN) at equal goodput, {how}, {period} s"
                yield j.compare(label, j.ratio(how, study=study), "below")
    forty = js[1]
    low = [forty.ratio("hard", study=study, lowest=1) for study in UDP]
    known = [x for x in low if x is not None]
    values = _per_seed(np.array(known)) if known else None
    yield forty.compare("the same at the lowest goodput, hard, mean of the three periods", values, "above")


def _c8(js: list[_Judge]) -> Iterator[Comparison]:
    for j in js:
        for how in ("soft", "hard"):
            for words, out, into in (("free TCP", "free-out", "free-in"), ("UDP", "udp-out", "udp-1")):
                gain = j.difference("goodput_marked", how, out, into)
                label = f"goodput of a marked flow with {words} OUT less with it IN, {how}"
                yield Comparison(label, gain, "above", unit="bit/s", topology=j.title)
        f, base = j.frontier("hard", "udp-1"), j.frontier("none", "udp-1")
        gains = [f[name] / base[name] for name in ("goodput_udp", "goodput_marked")]
        label = "UDP's gain from the marker less TCP's, hard, as shares of what they get without"
        yield j.compare(label, _per_seed(gains[0] - gains[1]), "above")


def _c9(js: list[_Judge]) -> Iterator[Comparison]:
    for j in js:
        for scheme, words in (("bucket", "token bucket"), ("every-nth", "every n-th")):
            label = f"greatest goodput, {words} less all IN, hard"
            yield j.reach(label, scheme, "none", "below", "others")
        yield j.reach("greatest goodput, probe less all IN, hard", "hard", "none", "above")


def _c10(js: list[_Judge]) -> Iterator[Comparison]:
    for j in js:
        values = j.ratio("hard", name="load_variance")
        yield j.compare("ln(variance of the load, probe / all IN) at equal goodput, hard", values, "below")


_CLAIMS = {
    "C1": _c1,
    "C2": _c2,
    "C3": _c3,
    "C4": _c4,
    "C5": _c5,
    "C6": _c6,
    "C7": _c7,
    "C8": _c8,
    "C9": _c9,
    "C10": _c10,
}


def _signed(x: float) -> str:
    return f"{x:+.2f}".replace("-", "−")


def _swept(paper: Paper, runs: Runs, sweep: str, value: str, scheme: str) -> Frontier | None:
    """One value of a sweep, if it was run."""
    entry = paper.find("sweeps", sweep)
    key = (swept(entry, value), entry["topology"], scheme)
    return runs.frontier(*key) if key in runs else None


def _readings(claim: str, paper: Paper, runs: Runs) -> Iterator[str]:
    """What another reading of the marker's rules would give: see the sweeps."""
    if claim == "C5":
        f = _swept(paper, runs, "reading-free", "A+1", "hard")
        if f is not None:
            share = 2 * f["goodput_marked"] / (f["goodput_marked"] + f["goodput_free"])
            yield (
                f"With the rule A+1 marked flows get {100 * share.mean():.1f} % of the fair share"
                " (10 flows, hard, min_in 24): what starves them is how often they probe."
            )
    if claim == "C7":
        f = _swept(paper, runs, "reading-udp", "once per window", "soft")
        ratio = None if f is None else log_ratio(f, runs.frontier("udp-1", "forty", "none"))
        if ratio is not None:
            yield (
                f"Where a loss counts once per window, ln(delay, probe / all IN) is"
                f" {_signed(float(np.mean(ratio)))} with 40 flows, soft, 1 s: a timeout's repeated packets"
                " are what drives A down there."
            )


def _notes(claim: str, runs: Runs, js: list[_Judge]) -> Iterator[str]:
    """Measured circumstances: overflow drops, the other number of flows, what a marker's share was."""
    if claim == "C1":
        lost = sum(m["overflow"].sum() for key in runs.keys() for m in runs.points(*key).values())  # noqa: SIM118
        yield (
            "No packet was lost to a full queue in any run, as the paper says of its own."
            if lost == 0
            else f"{lost:.0f} packets were lost to a full queue, which the paper rules out."
        )
    if claim == "C3":
        last = js[1].frontier("hard").points[-1]
        yield (
            f"With 40 flows {100 * last['loss_out'].mean():.0f} % of OUT packets and"
            f" {100 * last['loss_in'].mean():.2f} % of IN packets are lost there."
        )
    if claim == "C9":
        for j in js:
            shares = [
                f"{100 * (1 - j.frontier(s, study)['share_in'].mean()):.1f} %"
                for s, study in (("hard", "frontier"), ("bucket", "others"), ("every-nth", "others"))
            ]
            yield (
                f"With {j.title} {shares[0]} of the probe marker's packets are OUT, {shares[1]} of the token"
                f" bucket's and {shares[2]} of the every-n-th marker's."
            )
            ratios = [
                (words, j.ratio(scheme, study="others"))
                for scheme, words in (("bucket", "the token bucket"), ("every-nth", "the every-n-th marker"))
            ]
            told = [f"{_signed(float(np.mean(r)))} for {words}" for words, r in ratios if r is not None]
            if told:
                yield f"Where goodputs can be matched ln(delay / all IN) is {' and '.join(told)}."


def findings(paper: Paper, cells: Cells, variant: str = "") -> list[Finding]:
    """Collect what was measured about every claim."""
    runs = Runs(cells)
    js = [_Judge(runs, topology) for topology in paper.topologies]
    return [
        Finding(
            c["id"],
            SETUP,
            list(_CLAIMS[c["id"]](js)),
            list(_numbers(c["id"], js)),
            [*_notes(c["id"], runs, js), *_readings(c["id"], paper, runs)],
        )
        for c in paper.claims
    ]


def table(paper: Paper, cells: Cells) -> list[dict[str, Any]]:
    """Fig. 3–7 in a few figures: delay at equal goodput, share of IN packets, loss of OUT packets.

    Every point of every figure is among the measures.
    """
    runs = Runs(cells)
    rows = []
    for j in (_Judge(runs, topology) for topology in paper.topologies):
        for scheme in ("soft", "soft-one", "hard", "hard-one"):
            f, ratio = j.frontier(scheme), j.ratio(scheme)
            found = {
                "delay over that of all IN, at equal goodput": None
                if ratio is None
                else [float(np.exp(r)) for r in ratio],
                "share of IN packets, mean over thresholds": _per_seed(f["share_in"]),
                "share of OUT packets lost, mean over thresholds": _per_seed(f["loss_out"]),
            }
            rows += [
                {
                    "table": "Fig. 3–7",
                    "what": what,
                    "label": f"{j.title}, {paper.find('schemes', scheme)['title']}",
                    "unit": "",
                    "setup": SETUP,
                    "topology": j.id,
                    "scheme": scheme,
                    "variant": "",
                    "paper": None,
                    "values": values,
                    "seeds": list(f.points[0].seeds),
                }
                for what, values in found.items()
                if values is not None
            ]
    return rows
