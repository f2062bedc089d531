"""The overview: every paper's verdicts at a glance, the comparison, and what happens when X meets Y at Z.

Z is where packets are lost or marked: the policer of an edge or of the flows, else the queue of the measured
link. `meetings.json` beside a paper's page has them, `experiments/` the file of each, and `meetings.html`
beside the overview all that are in a folder of reports.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ....charts.page import asset, environment
from ....experiment.dump import written
from ....experiment.scenario import load
from ....metrics.glossary import entries
from ....metrics.measures import Array
from ....metrics.quantity import quantity
from ....metrics.stats import FREE, SHARE, Bounds, estimated
from ....papers.claim import Verdict
from ....run.storage import FolderInUse, replace_text
from ...compare.advice import MARGINS
from ...compare.brief import CAPTION, HEADS, WORDS, brief
from .page import SIGNS, counts_of

if TYPE_CHECKING:
    from ....experiment.scenario import Scenario
    from ....metrics.measures import Measures
    from ....papers import Cell
    from ....papers.report import Report
    from ...compare.advice import Advice


#: The file beside a paper's page.
NAME = "meetings.json"
#: The page beside the overview.
PAGE = "meetings.html"

_SENDERS = {
    "cubic": "CUBIC",
    "bbr": "BBR",
    "prague": "Prague",
    "dctcp": "DCTCP",
    "sack": "Reno",
    "reno": "Reno",
    "newreno": "Reno",
    "ledbat": "LEDBAT",
    "copa": "Copa",
    "dcqcn": "DCQCN",
}


def meetings(report: Report) -> list[dict[str, Any]]:
    """The experiments of a report in which one or two groups of flows send all they can."""
    return [row for cell, scenario in _plain(report) if (row := _meeting(report, cell, scenario)) is not None]


def experiments(report: Report) -> dict[str, str]:
    """The experiment of each, by its file's name."""
    there = {row["file"] for row in meetings(report)}
    return {
        name: written(scenario, f"{report.paper.short}: {cell}. Run it: inprofile run {name} --out r")
        for cell, scenario in _plain(report)
        if (name := _file(cell)) in there
    }


def _plain(report: Report) -> Iterator[tuple[Cell, Scenario]]:
    for cell, job in report.jobs.items():
        if not cell.variant and not cell.sweep and job.after is None:
            yield cell, load(report.paper.folder / job.file).with_(job.values)


def _file(cell: Cell) -> str:
    return (
        re.sub(r"[^a-z0-9]+", "-", f"{cell.setup}-{cell.topology}-{cell.scheme}".lower()).strip("-") + ".toml"
    )


def _meeting(report: Report, cell: Cell, scenario: Scenario) -> dict[str, Any] | None:
    """One row; None of an experiment with other traffic, more kinds of senders, or other measures."""
    effective = scenario.check().effective
    groups = [g for g in effective["flows"] if g["count"]]
    measures: Measures = report.cells[cell]
    if len(groups) > 2 or any(g["traffic"]["kind"] != "bulk" or not g.get("tcp") for g in groups):
        return None
    if any(f"{g['name']}.goodput" not in getattr(measures, "values", {}) for g in groups):
        return None
    link = next(x for x in effective["links"] if x["name"] == effective["measure"]["at"])
    kind, buffer, rate = _place(effective, link)
    x, *others = groups
    rows = {g["name"]: measures[f"{g['name']}.goodput"] for g in groups}
    y = others[0] if others else None
    ratio = None if y is None else _figure(rows[x["name"]] / rows[y["name"]])
    return {
        "paper": report.paper.name,
        "short": report.paper.short,
        "what": ", ".join(
            report.paper.find(table, key).title
            for table, key in (("topologies", cell.topology), ("schemes", cell.scheme))
        ),
        "x": _sender(x),
        "y": None if y is None else _sender(y),
        "flows": [g["count"] for g in groups],
        "place": kind,
        "buffer": buffer,
        "rate": rate,
        "rtt": " and ".join(dict.fromkeys(str(g["rtt"]) for g in groups)),
        "ratio": ratio,
        "goodput": [_figure(rows[g["name"]]) for g in groups],
        "delay": _figure(measures["delay_mean"]),
        "lost": _lost(groups, measures),
        "file": _file(cell),
    }


def _lost(groups: list[Mapping[str, Any]], measures: Measures) -> dict[str, Any]:
    """The share of packets lost, anywhere on the way."""
    dropped = sum(g["count"] * measures[f"{g['name']}.dropped"] for g in groups)
    sent = sum(
        g["count"] * (measures[f"{g['name']}.sent_in"] + measures[f"{g['name']}.sent_out"]) for g in groups
    )
    return _figure(dropped / sent, SHARE)


def _figure(values: Array, bounds: Bounds = FREE) -> dict[str, Any]:
    """Mean over the seeds, 95 % interval and how many."""
    found = estimated([float(v) for v in values], bounds)
    return {key: found[key] for key in ("mean", "ci95", "n")}


def _sender(group: Mapping[str, Any]) -> str:
    name = str(group["tcp"]["congestion"])
    return _SENDERS.get(name, name)


def _place(effective: Mapping[str, Any], link: Mapping[str, Any]) -> tuple[str, str, str]:
    """Where packets are dropped or marked, how much it holds, and its rate."""
    policers = [
        (m, holder)
        for holder in (*effective["edges"], *effective["flows"])
        if (m := holder.get("marker"))
        and (m.get("action") == "drop" or m["kind"] == "fair_policer")
        and holder.get("count", 1)
    ]
    if policers:
        one, holder = policers[0]
        burst = one.get("depth") or one.get("burst")
        size = quantity(burst["bytes"], "B") if isinstance(burst, Mapping) else str(burst)
        name = {"token_bucket": "policer"}.get(one["kind"], one["kind"].replace("_", " "))
        return name, size, holder.get("contract") or one["rate"]
    queue, rate = link["queue"], link["rate"]
    if "classes" in queue:
        first, *others = queue["classes"]
        if others:
            return f"{queue['scheduler']}, {len(others) + 1} classes".replace("_", "-"), "–", rate
        queue, rate = first, first.get("rate", rate)
    limit = queue["limit"]
    one_queue = queue["aqm"].startswith("fq_") and queue.get("flows") == 1
    name = f"{queue['aqm'].removeprefix('fq_')}, one queue" if one_queue else queue["aqm"]
    ecn = ", ECN" if queue.get("ecn") else ""
    bucket = " behind a token bucket" if "burst" in queue else ""
    return f"{name.replace('_', '-')}{ecn}{bucket}", f"{limit['ms']:.3g} ms", rate


def write_page(folder: Path) -> Path | None:
    """Write the page of all meetings in a folder of reports; None, and no page, where there are none."""
    rows = [
        {**row, "link": f"{path.parent.name}/experiments/{row['file']}"}
        for path in sorted(folder.glob(f"*/{NAME}"))
        for row in json.loads(path.read_text("utf-8"))["meetings"]
    ]
    if not rows:
        return None
    senders = sorted({s for row in rows for s in (row["x"], row["y"]) if s})
    page = folder / PAGE
    text = (
        environment()
        .get_template("meetings.html.j2")
        .render(
            rows=rows,
            senders=senders,
            places=sorted({row["place"] for row in rows}),
            css=Markup(asset("page.css")),  # noqa: S704 (our own file)
        )
    )
    replace_text(page, text)
    return page


#: By file, the title of the page.
_TITLES = {
    "index.html": "Claims and verdicts",
    "glossary.html": "Glossary",
    "meetings.html": "Who meets whom",
}


def write_overview(folder: Path) -> Path:
    """Write `index.html` and the glossary into `folder`, from the `results.json` of each paper's folder."""
    found = [read_results(path.parent) for path in sorted(folder.glob("*/results.json"))]
    papers = [_row(data) for data in found if data is not None and "claims" in data]
    comparison = _comparison(folder)
    text = (
        environment()
        .get_template("overview.html.j2")
        .render(
            papers=papers,
            comparison=comparison,
            advice=(advised := _advice(comparison)),
            brief=brief(advised),
            heads=HEADS,
            words=WORDS,
            caption=CAPTION,
            fairness_margin=MARGINS["fairness"],
            primary={v: sum(p["by_setup"][0]["counts"][v] for p in papers if p["by_setup"]) for v in Verdict},
            signs=SIGNS,
            verdicts=[(v, sum(p["counts"][v] for p in papers)) for v in Verdict],
            kept=[(v, sum(p["kept"][v] for p in papers)) for v in Verdict],
            meetings=write_page(folder),
            dates=sorted({p["committed"]["date"] for p in papers if any(p["kept"].values())}),
            css=Markup(asset("page.css")),  # noqa: S704 (our own file)
        )
    )
    page = folder / "index.html"
    replace_text(page, text)
    replace_text(folder / "glossary.html", _glossary())
    return page


def check_overview(folder: Path) -> None:
    """Raise FolderInUse where the overview would be written over pages of something else."""
    for name, title in _TITLES.items():
        page = folder / name
        if page.exists() and f"<title>{title}</title>" not in page.read_text("utf-8", "replace"):
            raise FolderInUse(
                f"{page} would be written over, and is none of Inprofile's: choose another place"
            )


def read_results(folder: Path) -> dict[str, Any] | None:
    """A report's `results.json`; None where it is no object, and so of another program."""
    try:
        data = json.loads((folder / "results.json").read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return data if isinstance(data, dict) else None


def _glossary() -> str:
    """The page that reports link their words to."""
    return (
        environment()
        .get_template("glossary.html.j2")
        .render(
            sections=[(section, list(rows)) for section, rows in groupby(entries(), lambda e: e.section)],
            css=Markup(asset("page.css")),  # noqa: S704 (our own file)
        )
    )


def _comparison(folder: Path) -> dict[str, Any] | None:
    """The conclusion of the comparison of schemes, if there is one."""
    found = read_results(folder / "compare")
    return found if found is not None and "advice" in found else None


def _advice(comparison: dict[str, Any] | None) -> list[Advice]:
    """What to use when: of the comparison beside the page if it is whole, else of the last whole one."""
    from ...compare.advice import committed

    if comparison is None or comparison["quick"]:
        return committed()
    rows: list[Advice] = comparison.get("advice", [])
    # Reports of an earlier version do not say what was shown to be as good.
    return rows if rows and all("undecided" in row for row in rows) else committed()


def _row(data: dict[str, Any]) -> dict[str, Any]:
    """One paper: its claims, each with a verdict in every set-up."""
    setups = data["setups"]
    claims: dict[str, dict[str, Any]] = {}
    for c in data["claims"]:
        once = c["id"] in data.get("once", ())
        row = claims.setdefault(c["id"], {"id": c["id"], "text": c["text"], "once": once, "verdicts": {}})
        row["verdicts"][c["setup"]] = {
            "verdict": Verdict(c["verdict"]),
            "kept": c.get("source") == "committed",
            "comparisons": c["comparisons"] if c["comparisons"]["total"] else None,
        }
    # Reports of an earlier version have what was run only, and do not say so.
    sources = ("run", "committed")
    ran, kept = ([c for c in data["claims"] if c.get("source", "run") == source] for source in sources)
    return {
        **{key: data[key] for key in ("paper", "title", "authors", "year", "quick", "version")},
        "committed": data.get("committed"),
        "short": data["short"],
        # Reports of an earlier version have none.
        "use": _use(data.get("advice")),
        "setups": setups,
        "claims": list(claims.values()),
        "today": counts_of(data["today"]) if data.get("today") else None,
        # What was run here and what was not are never added up.
        "counts": _counts(ran),
        "kept": _counts(kept),
        "by_setup": [
            {
                "setup": s,
                "counts": _counts([c for c in ran if c["setup"] == s["id"]]),
                "kept": _counts([c for c in kept if c["setup"] == s["id"]]),
            }
            for s in setups
        ],
    }


def _use(advice: dict[str, Any] | None) -> str | None:
    """Whether to use it, in a sentence; None where its runs do not bear that out."""
    return None if advice is None or "use" in advice["unmet"] else str(advice["sentences"]["use"])


def _counts(claims: list[dict[str, Any]]) -> dict[Verdict, int]:
    return {v: sum(c["verdict"] == v for c in claims) for v in Verdict}
