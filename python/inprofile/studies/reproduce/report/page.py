"""The page: a paper's own sections and charts put into the common frame, everything inline.

A paper under today's TCP senders (`papers.rerun`), as its page and the overview show it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....charts.page import Charts, environment, figure, page_parts
from ....metrics.quantity import number, pm, quantity
from ....metrics.stats import Estimate, Interval
from ....papers import Paper, parameters, verdicts
from ....papers.advice import advice_of
from ....papers.claim import Judged, JudgedComparison, JudgedNumber, Verdict
from ....papers.judge import earlier
from ....papers.judge_text import aligned, claimed_words, least_words, per
from ....papers.rerun import OWN, own_title
from ....papers.verdicts import BECAUSE
from .atlas import atlas_context, too_few_seeds

if TYPE_CHECKING:
    from ....papers import Cell, Entry
    from ....papers.report import Report


def today_context(found: Mapping[str, Any], paper: Paper) -> dict[str, Any]:
    """The part of the paper's `today.json` that the page's section shows."""
    known = {c["id"]: c["verdicts"] for c in found["claims"]}
    found = {**found, "senders": _named(found["senders"], paper)}
    names = [s["id"] for s in found["senders"]]
    return {
        "seeds": found["seeds"],
        "version": found["version"],
        "earlier": earlier(found),
        "senders": found["senders"],
        "setup": paper.find("setups", found["setup"]).title,
        "invalid": [
            (s["title"], found["invalid"][s["id"]]) for s in found["senders"] if s["id"] in found["invalid"]
        ],
        "claims": [
            {
                "id": claim.id,
                "text": claim.text,
                "answers": [_answer(known[claim.id].get(name)) for name in names],
            }
            for claim in paper.claims
            if claim.id in known
        ],
        "rows": [
            {
                "what": row["what"].replace("_", " "),
                "label": row["label"],
                "table": row["table"],
                "paper": "–" if row["paper"] is None else quantity(row["paper"], row["unit"]),
                "figures": [_figure(row["senders"].get(name), row["unit"]) for name in names],
            }
            for row in found["rows"]
        ],
        "shortened": paper.about.get("today", ""),
        "advised": _advised(found.get("advised"), paper),
    }


def _named(senders: Sequence[Mapping[str, str]], paper: Paper) -> list[dict[str, str]]:
    """Senders with their titles, the paper's own as it is called now."""
    return [{**s, "title": own_title(paper) if s["id"] == OWN else s["title"]} for s in senders]


def _advised(found: Mapping[str, Any] | None, paper: Paper) -> dict[str, Any] | None:
    """What the page advises under each sender: a row a figure; None where nothing was run."""
    if found is None:
        return None
    found = {**found, "senders": _named(found["senders"], paper)}
    names = [s["id"] for s in found["senders"]]
    return {
        "senders": found["senders"],
        "invalid": [
            (s["title"], found["invalid"][s["id"]]) for s in found["senders"] if s["id"] in found["invalid"]
        ],
        "rows": [
            {"words": row["words"], "figures": [_figure(row["senders"].get(n), row["unit"]) for n in names]}
            for row in found["rows"]
        ],
    }


def counts_of(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """How many claims have which verdict under each sender."""
    return [
        {
            "title": sender["title"],
            "counts": [
                (v, sum(c["verdicts"].get(sender["id"], [""])[0] == v.value for c in found["claims"]))
                for v in Verdict
            ],
        }
        for sender in found["senders"]
    ]


def _answer(answer: list[Any] | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    verdict, holds, opposite, total = Verdict(answer[0]), *answer[1:]
    # Beside no placebo, only the correction makes it another word than the counts do.
    why = "" if verdict in _by_counts(holds, opposite, total) else BECAUSE["correction"]
    return {"verdict": verdict, "holds": holds, "opposite": opposite, "total": total, "why": why}


def _by_counts(holds: int, opposite: int, total: int) -> set[Verdict]:
    """What the counts alone would give, before Holm's correction over the claim's comparisons.

    >>> sorted(v.value for v in _by_counts(3, 0, 4)), sorted(v.value for v in _by_counts(1, 1, 2))
    (['in_part', 'mostly'], ['mixed'])
    """
    if holds and opposite:
        return {Verdict.MIXED}
    if holds:
        return {Verdict.REPRODUCED} if holds == total else {Verdict.MOSTLY, Verdict.IN_PART}
    if opposite:
        return {Verdict.OPPOSITE}
    return {Verdict.NOT_SHOWN, Verdict.NO_EFFECT, Verdict.UNDECIDABLE}


def _figure(figure: Mapping[str, Any] | None, unit: str) -> str:
    if figure is None:
        return "–"
    ci95 = None if figure["ci95"] is None else Interval(*figure["ci95"])
    return pm(Estimate(figure["mean"], ci95, figure["n"]), unit).replace("-", "−")


#: A sign for each verdict, so that the matrix can be read without its colours.
SIGNS = {
    "reproduced": "✓",
    "mostly": "◕",
    "in_part": "◑",
    "mixed": "±",
    "not_shown": "○",
    "no_effect": "=",
    "opposite": "✗",
    "undecidable": "?",
}


def compose(report: Report) -> tuple[dict[str, Any], Charts]:
    """Make the paper's own part of the page: what its template shows, and its charts by name."""
    charts: Charts = {}
    advice = advice_of(report)
    if advice is not None:
        charts["advice"] = advice.picture
    return {**report.paper.module("page").context(report, charts), "advice": advice}, charts


def render(report: Report, composed: tuple[dict[str, Any], Charts] | None = None) -> str:
    """The whole page as HTML; it needs no network and no other file."""
    paper = report.paper
    context, charts = composed or compose(report)
    return (
        environment(paper.folder, charts=charts)
        .get_template("page.html.j2" if (paper.folder / "page.html.j2").exists() else "plain.html.j2")
        .render(
            report=report,
            paper=paper,
            about=paper.about,
            setups=report.shown,
            committed=report.committed,
            claims=_claims(report),
            tally=_tally(report),
            experiments=_experiments(report),
            seeds=_seeds(report),
            signs=SIGNS,
            readings=parameters.readings(paper),
            inputs=parameters.inputs(paper),
            atlas=None if report.atlas is None else atlas_context(report.atlas, paper),
            too_few_seeds=too_few_seeds(report, report.atlas),
            today=None if report.today is None else today_context(report.today, paper),
            **page_parts(charts),
            **context,
        )
    )


def _claims(report: Report) -> list[dict[str, Any]]:
    """Every claim with its verdicts: for each set-up that it was judged in, plain and under each variant."""
    plain = {(j.claim, j.setup): j for j in report.judged}
    return [
        {
            "id": claim.id,
            "text": claim.text,
            "once": claim.flag("once"),
            "says": claim.word("says", ""),
            "quote": claim.word("quote", ""),
            "setups": [
                _ran(report, judged)
                if (judged := plain.get((claim.id, setup.id)))
                else _kept(report, claim.id, setup)
                for setup in report.shown
            ],
        }
        for claim in report.paper.claims
    ]


def _ran(report: Report, judged: Judged) -> dict[str, Any]:
    """A claim in a set-up, as it was judged here."""
    key = (judged.claim, judged.setup)
    others = {v: j for v, found in report.variants.items() for j in found if (j.claim, j.setup) == key}
    known = report.known.get(key)
    return {
        "setup": report.paper.find("setups", judged.setup),
        "judged": judged,
        "kept": None,
        # What more experiments and seeds came to, where that is another verdict.
        "full": Verdict(known["verdict"]) if known and known["verdict"] != judged.verdict else None,
        "variants": [
            {"title": v.title, "judged": other, "differs": other.verdict != judged.verdict}
            for v in report.paper.variants
            if (other := others.get(v.id))
        ],
        "kept_variants": _kept_variants(report, judged.claim, judged.setup, judged.verdict),
        # Where a paper has one network only, there is no column for it.
        "places": any(c.comparison.topology for c in judged.comparisons)
        or any(n.number.topology for n in judged.numbers),
        "comparisons": [_row(c) for c in judged.comparisons],
        "numbers": [_number(n) for n in judged.numbers],
        "p": _p(judged.p),
        "p_holm": _p(judged.p_holm),
    }


def _kept(report: Report, claim: str, setup: Entry) -> dict[str, Any] | None:
    """A claim in a set-up that was not run here, or only in part, with its committed verdict."""
    found = report.kept.get((claim, setup.id))
    if found is None:
        return None
    verdict = Verdict(found["verdict"])
    return {
        "setup": setup,
        "judged": None,
        "kept": {**found, "verdict": verdict, "total": verdicts.total(found)},
        "kept_variants": _kept_variants(report, claim, setup.id, verdict),
    }


def _kept_variants(report: Report, claim: str, setup: str, verdict: Verdict) -> list[dict[str, Any]]:
    """Committed verdicts under variants, of those that were not run here."""
    known = report.kept_under(claim, setup)
    return [
        {"title": v.title, "verdict": known[v.id], "differs": known[v.id] != verdict}
        for v in report.paper.variants
        if v.id in known
    ]


def _experiments(report: Report) -> list[dict[str, Any]]:
    """The runs: file, changes to it, seeds and digest; sweeps' are in `results.json`."""
    return [
        {"cell": cell, "file": job.file, "seeds": job.seeds, "digest": report.digests[cell]}
        for cell, job in report.jobs.items()
        if not _swept(report, cell)
    ]


def _swept(report: Report, cell: Cell) -> bool:
    """Whether a cell varies an assumption; the points of a figure do not."""
    # A paper may call a swept value's cells `sweep: value`.
    return cell.sweep.split(": ")[0] in {s.id for s in report.paper.sweeps}


def _seeds(report: Report) -> list[int]:
    """How many seeds the experiments of the primary set-up have."""
    first = report.paper.setups[0].id
    return sorted({j.seeds for c, j in report.jobs.items() if c.setup == first and not _swept(report, c)})


_OUTCOMES = {
    "holds": "holds",
    "opposite": "significantly opposite",
    "no_effect": "no effect",
    "open": "open (not significant)",
    "undecidable": "undecidable in this set-up",
}


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else number(p, 2)


def _row(judged: JudgedComparison) -> dict[str, Any]:
    c = judged.comparison
    lo, hi = judged.interval
    factor, name = per(c.unit, max(abs(lo), abs(hi), abs(judged.mean)))
    shown = aligned(judged.mean / factor, lo / factor, hi / factor)
    known = c.measured or judged.outcome != "undecidable"
    return {
        "label": c.label,
        "claimed": claimed_words(c),
        "topology": c.topology,
        "mean": f"{shown[0]} {name}".rstrip() if known else "–",
        "interval": f"{shown[1]} to {shown[2]}" if known else "–",
        "p": _p(judged.p) if known else "–",
        "outcome": judged.outcome,
        "words": _OUTCOMES[judged.outcome],
        "obstacle": judged.why or None,
        "least": least_words(c),
    }


def _number(judged: JudgedNumber) -> dict[str, Any]:
    n = judged.number
    lo, hi = judged.prediction
    factor, name = per(n.unit, max(abs(lo), abs(hi), abs(judged.mean)))
    shown = aligned(judged.mean / factor, lo / factor, hi / factor)
    return {
        "label": n.label,
        "topology": n.topology,
        "paper": figure(n.paper, n.unit),
        "where": n.where,
        "mean": f"{shown[0]} {name}".rstrip(),
        "prediction": f"{shown[1]} to {shown[2]}",
        "inside": judged.inside,
        "obstacle": judged.uncounted or None,
    }


def _tally(report: Report) -> list[dict[str, Any]]:
    """How many claims got which verdict, by set-up; committed ones are counted apart."""
    return [
        {
            "setup": setup,
            "counts": [
                (verdict, sum(j.setup == setup.id and j.verdict == verdict for j in report.judged))
                for verdict in Verdict
            ],
            "kept": [
                (verdict, sum(s == setup.id and a["verdict"] == verdict for (_, s), a in report.kept.items()))
                for verdict in Verdict
            ],
        }
        for setup in report.shown
    ]
