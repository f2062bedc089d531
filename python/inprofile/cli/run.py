"""`inprofile run`: an experiment, once a seed."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._input import seeds_in_order, visible
from ..own import cost
from .common import (
    INTERRUPTED,
    TERMINATED,
    File,
    Jobs,
    Json,
    Latex,
    Out,
    Own,
    PerRun,
    Refused,
    Set,
    Terminated,
    Trace,
    Yes,
    check_latex,
    emit,
    full_disk,
    guarded,
    open_scenario,
    option,
    say,
    seeds_of,
    terminable,
    write_latex,
)
from .execution import TRACED, affordable, announce, packets_text, progress, room_for

if TYPE_CHECKING:
    from ..experiment.scenario import Scenario, Seeds
    from ..metrics.summary import Row
    from ..run.results import Result


GLOSSARY = "What the columns mean: inprofile glossary"


@guarded
def run(
    file: File,
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="N|A..B", help="Seeds to run: N for 1 … N, or a range; default: as in the file."
        ),
    ] = None,
    set_: Set = None,
    mechanism: Own = None,
    jobs: Jobs = None,
    threads_per_run: PerRun = 1,
    out: Out = None,
    trace: Trace = False,
    latex: Latex = None,
    csv: Annotated[
        Path | None, option("Write the result tables to this folder as CSV too, with their units.")
    ] = None,
    pcap: Annotated[
        Path | None,
        option("Write the first seed's packets at a link to this file, for Wireshark (pcapng).", "FILE"),
    ] = None,
    at: Annotated[
        list[str] | None,
        option("The link of --pcap; repeatable. Default: where the experiment measures.", "LINK"),
    ] = None,
    snaplen: Annotated[
        int | None, option("Of each packet, so much goes into --pcap; default: all.", "BYTES")
    ] = None,
    ns2_trace: Annotated[
        Path | None,
        option(
            "Write the first seed's packets at every link to this file, in ns-2's format.",
            "FILE",
            "--ns2-trace",
        ),
    ] = None,
    flows: Annotated[
        bool,
        typer.Option("--flows", help="List every flow, however many; --json lists up to 1,000 without it."),
    ] = False,
    yes: Yes = False,
    json_: Json = False,
) -> None:
    """Run an experiment once per seed; print metrics with 95 % confidence intervals over the seeds."""
    # Imported where they are needed: a shell that completes an option waits for this module.
    from ..run.csv_files import check_csv_place, write_csv
    from ..run.storage import check_place

    scenario = open_scenario(file, set_)
    which = None if seeds is None else seeds_of(seeds)
    if out is not None:
        check_place(out)
    if csv is not None:
        check_csv_place(csv)
    check_latex(latex)
    if pcap is None and (at or snaplen is not None):
        raise Refused("--at and --snaplen are of a capture: write --pcap FILE with them")
    packets = scenario.expected_packets(which)
    chosen = tuple(scenario.seeds) if which is None else seeds_in_order(which)
    runs = len(chosen)
    room_for(scenario, chosen, jobs, threads_per_run)
    affordable(packets, yes, runs, traced=trace)
    announce([(scenario, runs * (TRACED if trace else 1.0))], jobs)
    for warning in scenario.warnings:
        print(warning, file=sys.stderr)
    # Before the runs, as it refuses links that are not there.
    _write_packets(scenario, chosen[0], pcap, at or [], snaplen, ns2_trace)
    from ..run.experiments import run_many
    from ..run.pool import Local, in_parts, shared_out

    if threads_per_run > 1:
        of_each = shared_out(jobs, threads_per_run)[1]
        print(in_parts(scenario, of_each, chosen[0], trace=trace), file=sys.stderr)

    with progress(f"{scenario.title}, {packets_text(packets)}") as tell:
        where = Local(jobs, tell.under_way, threads_per_run)
        if out is None or runs == 1:
            (result,) = run_many([(scenario, chosen)], where, tell, trace=trace)
        else:
            more = {"jobs": jobs, "trace": trace, "progress": tell, "under_way": tell.under_way}
            more["threads_per_run"] = threads_per_run
            result = _run_kept(scenario, which, out, **more)
    if out is not None and runs == 1:
        result.write(out)
    if csv is not None:
        write_csv(result._tables, csv)
    write_latex(latex, result.latex)
    for name in scenario.own:
        print(f"{name}, in Python: {cost(name)}", file=sys.stderr)
    if json_:
        emit(
            {
                **as_json(result, scenario.file, flows),
                "warnings": [asdict(warning) for warning in scenario.warnings],
                "expected_packets": round(packets),
            }
        )
    else:
        say(as_text(result, flows))
        if out is not None:
            say(f"\nWritten to {out}. Read it with inprofile.read, or ask why a flow got its rate:")
            contracts = result.contracts
            first = str(result.rows("flows")[0].keys["flow"])
            say(f"  inprofile explain {out} --flow {contracts.total.worst_flow if contracts else first}")


def _write_packets(
    scenario: Scenario,
    seed: int,
    pcap: Path | None,
    at: list[str],
    snaplen: int | None,
    ns2_trace: Path | None,
) -> None:
    """Run a seed once more for each file of packets that is asked for; say what was written."""
    from ..run.packets import NotCaptured, write_capture, write_ns2_trace

    if pcap is not None:
        try:
            found = write_capture(scenario, pcap, at, seed=seed, snaplen=snaplen)
        except NotCaptured as error:
            raise Refused(visible(str(error))) from None
        print(
            f"Seed {seed}: {found.passed:,} packets, and {found.dropped:,} that were dropped, in"
            f" {visible(str(pcap))}",
            file=sys.stderr,
        )
    if ns2_trace is not None:
        write_ns2_trace(scenario, ns2_trace, seed=seed)
        print(f"Seed {seed}: every event at every link in {visible(str(ns2_trace))}", file=sys.stderr)


def _run_kept(scenario: Scenario, seeds: Seeds | None, out: Path, **more: Any) -> Result:
    """Run and write the result; if interrupted, say what was kept."""
    from ..run.ledger import InterruptedRun, run_kept
    from ..run.storage import check_place

    try:
        place = check_place(out)
        with terminable(), full_disk(place.with_name(f"{place.name}.unfinished")):
            return run_kept(scenario, seeds, out, **more)
    except InterruptedRun as error:
        print(visible(str(error)), file=sys.stderr)
        raise typer.Exit(TERMINATED if isinstance(error.__cause__, Terminated) else INTERRUPTED) from None


#: Up to this many flows are shown one by one; beyond that, by group.
MOST_FLOWS = 12
#: So does `--json`: each takes 3 kB there.
MOST_IN_JSON = 1000


def as_text(result: Result, every: bool = False) -> str:
    """Metrics, contracts, then flows (all with `every`) or their groups, queues that matter, edge markers."""
    from ..metrics.summary import text_table
    from ..run.trees import by_kind, level_table, levels

    seeds = result.seeds
    found_levels = levels(result)
    of_trees = {name for level in found_levels for name in level.links}
    folded = by_kind(result)
    head = f"{result.title}: seed{'s' * (len(seeds) != 1)} {_span(seeds)}"
    measure = result.provenance.effective["measure"]
    flows = result.rows("flows")
    measured = measure["at"]
    # Of trees, levels.
    queues = result.rows("queues").named(lambda name: name == measured or name not in of_trees)
    queues = queues.where(lambda row: row.keys["queue"] == measured or _busy(row))
    hosts = set(flows.names())
    edges = result.rows("markers").named(lambda place: place not in hosts)
    shown = str(flows)
    if len(flows) > MOST_FLOWS:
        or_json = ", or --json" if len(flows) <= MOST_IN_JSON else ""
        shown = f"{folded.groups()}\n{len(flows)} flows in groups; every flow: --flows{or_json}."
    if every:
        shown = flows.text(most=len(flows))
    parts = [
        head,
        f"Measured window: {measure['from']} to {measure['to']}\n{result.summary()}",
        *_contracts(folded),
        f"Flows: rates and packets sent within the window, dropped and RTOs over the whole run\n{shown}",
    ]
    if found_levels:
        parts.append(f"Levels of trees, within the window\n{level_table(found_levels)}")
    parts.extend(
        f"{what}, within the window\n{rows}"
        for what, rows in (("Queues", queues), ("Markers", edges))
        if rows
    )
    if pauses := _pauses(result):
        parts.append(f"Pauses that queues asked of the links before them, over the whole run\n{pauses}")
    times = folded.flow_times()
    # Of bulk flows there are start-up times only, which are in --json.
    if finite := [row for row in times if row.traffic != "bulk"]:
        parts.append(f"Times of flows, within the window\n{text_table(*times.table(finite))}")
    if delays := result.distributions():
        # Colours one by one are in the table: for each of them there is a line of its group.
        shown_delays = [d for d in delays if d.colour is None and (d.point == measured or d.group)]
        parts.append(f"Delays, within the window\n{text_table(*delays.table(shown_delays))}")
    return "\n\n".join([*parts, GLOSSARY])


def _contracts(result: Result) -> list[str]:
    """How contracts were kept: a sentence and a table; nothing where there are none."""
    from ..metrics.quantity import bits_per_second

    found = result.contracts
    if not found:
        return []
    effective = result.provenance.effective
    at = effective["measure"]["at"]
    rates = [link["rate"] for link in effective.get("links", ()) if link["name"] == at]
    return [f"{found.words(at, bits_per_second(rates[0]) if rates else None)}\n\n{found}"]


def _pauses(result: Result) -> str:
    """How often and how long queues paused the links before them, means over the seeds; or nothing."""
    from statistics import fmean

    from ..metrics.summary import text_table

    found: dict[str, list[dict[str, float]]] = {}
    for row in result.queues.select(["queue", "stats"]).to_pylist():
        stats = json.loads(row["stats"])
        if "pauses" in stats:
            found.setdefault(row["queue"], []).append(stats)
    if not found:
        return ""
    headings = ["queue", "pauses", "ms, all links together", "most kB of one link"]
    factors = {"pauses": 1.0, "paused_time": 1e3, "ingress_most": 1e-3}
    table = [
        [queue, *(f"{fmean(s[name] for s in of) * factor:.4g}" for name, factor in factors.items())]
        for queue, of in found.items()
    ]
    return text_table(headings, table)


def _busy(row: Row) -> bool:
    """Whether a queue dropped something, or was in use half of the time."""
    return row.figures["utilisation"].mean >= 0.5 or any(
        figure.mean > 0 for name, figure in row.figures.items() if name.startswith("dropped_")
    )


def as_json(result: Result, file: str, every: bool = False) -> dict[str, Any]:
    """The object that `--json` prints; of more than `MOST_IN_JSON` flows their groups, all with `every`."""
    from ..run.trees import by_kind, levels

    provenance = result.provenance
    found_levels = levels(result)
    flows = result.rows("flows")
    listed = every or len(flows) <= MOST_IN_JSON
    if not listed:
        print(
            f"{len(flows):,} flows: the answer has their groups, and null for flows; each flow: --flows"
            f" (about {len(flows) * 3e-3:,.0f} MB), or --out FOLDER for columns (Parquet).",
            file=sys.stderr,
        )
    return {
        "scenario": {"title": result.title, "file": file, "digest": provenance.digest},
        "seeds": list(result.seeds),
        "metrics": {name: metric.to_json() for name, metric in result.summary().items()},
        "contracts": result.contracts.to_json(),
        "groups": [group.to_json() for group in result.groups()],
        # Of trees also the kinds of customers, those of all leaves together.
        **(
            {
                "levels": [level.to_json() for level in found_levels],
                "kinds": [group.to_json() for group in by_kind(result).groups()],
            }
            if found_levels
            else {}
        ),
        # Written one by one: a hundred thousand flows are not held as text.
        "flows": (
            {**row.to_json(), "contract_kept": None if kept is None else kept.to_json()}
            for row, kept in zip(flows, result.contracts.flows(), strict=True)
        )
        if listed
        else None,
        **{kind: (row.to_json() for row in result.rows(kind)) for kind in ("queues", "markers")},
        "flow_times": [row.to_json() for row in result.flow_times()],
        "delays": [delay.to_json() for delay in result.distributions()],
        "conservation": True,
        "provenance": {
            "version": provenance.version,
            "digest": provenance.digest,
            "seeds": list(provenance.seeds),
            "experiment": json.loads(provenance.experiment),
        },
    }


def _span(seeds: tuple[int, ...]) -> str:
    """`1–20`, or the seeds themselves.

    >>> _span((1, 2, 3)), _span((7,)), _span((2, 5))
    ('1–3', '7', '2, 5')
    """
    if len(seeds) > 1 and seeds[-1] - seeds[0] == len(seeds) - 1:
        return f"{seeds[0]}–{seeds[-1]}"
    return ", ".join(map(str, seeds))
