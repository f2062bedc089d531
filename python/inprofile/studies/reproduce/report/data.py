"""A reproduced paper as JSON: verdicts with everything they rest on.

What lies beside a page for who takes its advice: the experiment as one file, and the picture alone.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from ....charts.page import SHOWN, svg
from ....experiment.dump import written
from ....experiment.scenario import load
from ....metrics.stats import Bounds, estimated
from ....papers.advice import Advice, advice_of
from ....papers.claim import Judged, JudgedComparison, JudgedNumber, Outcome, Verdict
from ....papers.report import TableRow, bounds_of, printed_rows
from ....papers.verdicts import Answered, total

if TYPE_CHECKING:
    from ....papers.report import Report


_OUTCOMES: tuple[Outcome, ...] = ("holds", "opposite", "no_effect", "open", "undecidable")


def report_json(report: Report) -> dict[str, Any]:
    """One entry of the list `papers` that `reproduce --json` prints.

    A claim's `source` is "run" where it was judged from this run, "committed" where not all its experiments
    were run here: then its verdict and counts are those of the last `--full`, of the day and version that
    `committed` says, and it has no samples. `because` is "placebo" or "correction" where the verdict is not
    the one that the counts alone would give: a placebo does as well, or Holm's correction leaves less; null
    where what is committed does not say. `told` has the figures that a table gives beside the verdict.
    `not_run` names what has neither, and `once` the claims that do not depend on the set-up: they are in the
    first one's alone. `today` has every claim and scheme under today's TCP senders, null for a paper that was
    never run so. `advice` has the page's first sentences and their figures, null for a paper that has none.
    """
    paper = report.paper
    claims = paper.module("claims")
    once = [c.id for c in paper.claims if c.flag("once")]
    known = report.committed
    ran = {(j.claim, j.setup) for j in report.judged}
    variants = {(v, j.claim, j.setup): j for v, judged in report.variants.items() for j in judged}
    return {
        "paper": paper.name,
        "title": paper.top.word("title"),
        "short": paper.short,
        "authors": paper.top.words("authors"),
        "year": paper.top.whole("year"),
        "source": paper.top.word("source"),
        "quick": report.quick,
        "full": report.full,
        "seeds": report.seeds,
        "version": report.version,
        "committed": None if known is None else {k: known[k] for k in ("date", "version", "seeds")},
        "setups": [{"id": s.id, "title": s.title, "text": s.text, "fitted": s.fitted} for s in report.shown],
        "claims": [
            *(_claim(report, j, variants) for j in report.judged),
            *(_kept(report, answered) for answered in report.kept.values()),
        ],
        "not_run": [
            {"id": claim.id, "setup": setup.id}
            for setup in report.shown
            for claim in paper.claims
            if (claim.id, setup.id) not in ran and (claim.id, setup.id) not in report.kept
            if claim.id not in once or setup == paper.setups[0]
        ],
        "once": once,
        "tables": [
            {
                **{k: v for k, v in row.items() if k not in ("values", "bounds")},
                "measured": estimated(row["values"], bounds_of(row)),
            }
            for row in table(report)
        ],
        "today": report.today,
        "advice": None if (advice := advice_of(report)) is None else advice.to_json(),
        **(claims.more(paper, report.cells) if hasattr(claims, "more") else {}),
        "measures": [
            {
                "setup": cell.setup,
                "topology": cell.topology,
                "scheme": cell.scheme,
                "variant": cell.variant or None,
                "sweep": cell.sweep or None,
                "value": cell.value or None,
                "digest": report.digests[cell],
                "seeds": list(measures.seeds),
                "derived": report.derived.get(cell),
                "mean": {name: float(x.mean()) for name, x in measures.values.items()},
            }
            for cell, measures in report.cells.items()
        ],
    }


def table(report: Report) -> list[TableRow]:
    """The paper's tables beside ours: as its claims have them, else its printed numbers."""
    claims = report.paper.module("claims")
    if hasattr(claims, "table"):
        made: list[TableRow] = claims.table(report.paper, report.cells)
        return made
    return list(printed_rows(report.paper, report.cells))


def measures_csv(report: Report) -> str:
    """Every measure of every cell and seed, a row each."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(["setup", "topology", "scheme", "variant", "sweep", "value", "measure", "seed", "measured"])
    for cell, measures in report.cells.items():
        for name, values in measures.values.items():
            for seed, x in zip(measures.seeds, values, strict=True):
                out.writerow([*astuple(cell), name, seed, repr(float(x))])
    return text.getvalue()


def _claim(report: Report, judged: Judged, variants: Mapping[tuple[str, str, str], Judged]) -> dict[str, Any]:
    return {
        **_stated(report, judged.claim, judged.setup),
        "measured": {
            "comparisons": [_comparison(c) for c in judged.comparisons],
            "numbers": [_number(n) for n in judged.numbers],
        },
        "verdict": judged.verdict.value,
        "because": judged.because,
        "told": judged.told,
        "source": "run",
        "comparisons": {
            **{name: judged.count(name) for name in _OUTCOMES},
            "total": len(judged.comparisons),
            "duplicates": judged.duplicates,
        },
        "numbers": {"inside": judged.inside, "total": judged.counted},
        "holds_where": holds_where(report, judged.claim, judged.setup),
        "p": judged.p,
        "p_holm": judged.p_holm,
        "why": judged.why,
        "variants": {
            v.id: {"verdict": other.verdict.value, "source": "run", "why": other.why}
            for v in report.paper.variants
            if (other := variants.get((v.id, judged.claim, judged.setup)))
        }
        | _kept_variants(report, judged.claim, judged.setup),
    }


def _stated(report: Report, claim: str, setup: str) -> dict[str, Any]:
    """A claim as the paper has it."""
    found = report.paper.find("claims", claim)
    numbers = [dict(n) for n in found.tables("numbers")]
    return {
        "id": claim,
        "setup": setup,
        "text": found.text,
        "paper": {"says": found.get("says"), "numbers": numbers},
    }


def _kept(report: Report, answered: Answered) -> dict[str, Any]:
    """A claim in a set-up that was not run here, or only in part: its committed verdict."""
    claim, setup = answered["id"], answered["setup"]
    return {
        **_stated(report, claim, setup),
        "measured": {"comparisons": [], "numbers": []},
        "verdict": answered["verdict"],
        "because": answered.get("because"),
        "told": answered.get("told", ""),
        "source": "committed",
        "comparisons": {
            **{name: answered[name] for name in _OUTCOMES},
            "total": total(answered),
            "duplicates": None,
        },
        "numbers": {"inside": answered["inside"], "total": answered["numbers"]},
        "holds_where": holds_where(report, claim, setup),
        "p": None,
        "p_holm": None,
        "why": "Not all experiments that this rests on were run here: the verdict of --full, as committed.",
        "variants": _kept_variants(report, claim, setup),
    }


def _kept_variants(report: Report, claim: str, setup: str) -> dict[str, Any]:
    """Committed verdicts under variants that were not run here, or only in part."""
    return {
        variant: {"verdict": verdict.value, "source": "committed", "why": None}
        for variant, verdict in report.kept_under(claim, setup).items()
    }


def holds_where(report: Report, claim: str, setup: str) -> list[dict[str, Any]]:
    """Other set-ups in which a claim is reproduced or mostly, and the nearest such point of the atlas."""
    verdicts = {j.setup: (j.verdict, "run") for j in report.judged if j.claim == claim}
    for (c, s), answered in report.kept.items():
        if c == claim:
            verdicts[s] = (Verdict(answered["verdict"]), "committed")
    found: list[dict[str, Any]] = [
        {"setup": s.id, "verdict": verdicts[s.id][0].value, "source": verdicts[s.id][1]}
        for s in report.paper.setups
        if s.id != setup and s.id in verdicts and verdicts[s.id][0].sound
    ]
    atlas = report.atlas or {"claims": []}
    for entry in atlas["claims"]:
        nearest = entry["nearest"]
        if entry["id"] == claim and nearest is not None:
            found.append({"point": nearest["point"], "verdict": nearest["verdict"]})
    return found


def _finite(bounds: Bounds) -> list[float | None]:
    """Bounds as JSON has them: null where there is none."""
    return [x if math.isfinite(x) else None for x in bounds]


def _comparison(judged: JudgedComparison) -> dict[str, Any]:
    c = judged.comparison
    return {
        "label": c.label,
        "topology": c.topology,
        "unit": c.unit or "1",
        "side": c.side,
        "null": c.null,
        "upper": None if c.upper == math.inf else c.upper,
        **estimated(c.values, c.bounds),
        "ci95": list(judged.interval),
        "measured": c.measured,
        "bounds": _finite(c.bounds),
        "p": judged.p,
        "outcome": judged.outcome,
        "effect": None
        if c.effect is None
        else {"size": c.effect.size, "why": c.effect.why, "stated": c.effect.stated},
        "placebos": dict(judged.beside),
        "obstacle": judged.why or c.obstacle,
    }


def _number(judged: JudgedNumber) -> dict[str, Any]:
    n = judged.number
    return {
        "label": n.label,
        "topology": n.topology,
        "unit": n.unit or "1",
        "paper": n.paper,
        "where": n.where,
        **estimated(n.values, n.bounds),
        "bounds": _finite(n.bounds),
        "prediction95": [judged.prediction.lo, judged.prediction.hi],
        "inside": judged.inside,
        "obstacle": judged.uncounted or None,
    }


def advised_experiment(report: Report, advice: Advice) -> str:
    """The experiment that the settings are of, as one file to run or to change."""
    job = report.jobs[advice.experiment]
    scenario = load(report.paper.folder / job.file).with_(job.values)
    of = str(advice.experiment).replace(" / ", ", ")
    head = f"{report.paper.short}: {of}. Run it: inprofile run experiment.toml"
    return written(scenario, head)


def picture_svg(spec: Mapping[str, Any]) -> str:
    """The picture, for pages that draw nothing themselves."""
    return svg(spec, 320, SHOWN)
