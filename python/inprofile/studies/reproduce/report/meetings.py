"""What happens when X meets Y at Z: every experiment of papers with one or two kinds of senders, to search.

Z is where packets are lost or marked: the policer of an edge or of the flows, else the queue of the measured
link. `meetings.json` beside a paper's page has them, `experiments/` the file of each, and `meetings.html`
beside the overview all that are in a folder of reports.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ....charts.page import asset, environment
from ....experiment.dump import written
from ....experiment.scenario import load
from ....metrics.measures import Array
from ....metrics.quantity import quantity
from ....metrics.stats import FREE, SHARE, Bounds, estimated
from ....run.storage import replace_text

if TYPE_CHECKING:
    from ....experiment.scenario import Scenario
    from ....metrics.measures import Measures
    from ....papers import Cell
    from ....papers.report import Report

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
