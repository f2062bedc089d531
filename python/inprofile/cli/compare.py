"""`inprofile compare`: every scheme on the same experiments, at equal delay."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..metrics.quantity import quantity
from ..metrics.summary import text_table
from ..own.registry import registered
from ..run.storage import check_folder
from .common import (
    Jobs,
    Json,
    Latex,
    Open,
    Own,
    Planned,
    Refused,
    Set,
    Yes,
    argument,
    check_latex,
    count_of,
    emit,
    guarded,
    names_of,
    option,
    overrides_of,
    say,
    write_latex,
)
from .execution import SlurmSet, Where, affordable, announce, made_by, print_plan, resumable

if TYPE_CHECKING:
    from ..studies.compare import Comparison
    from ..studies.compare.frontier import Tuned


@guarded
def compare(
    files: Annotated[
        list[Path] | None,
        argument("Your own experiment files; default: three that come with Inprofile.", "[FILE]…"),
    ] = None,
    set_: Set = None,
    schemes: Annotated[
        str | None,
        option(
            "Marker/AQM schemes to compare, by id, and files of your own schemes (.toml); default: all.",
            "A,B,…",
        ),
    ] = None,
    tcp: Annotated[
        str | None,
        option(
            "Senders by name, each an experiment of its own: linux (CUBIC), prague, bbr, reno, dctcp,"
            " ledbat, copa, dcqcn; default: [tcp] of your files, of ours five.",
            "A,B,…",
        ),
    ] = None,
    seeds: Annotated[str | None, option("Seeds 1 … N; default: the file's number.", "N")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer seeds and settings and shorter runs; the page says so.")
    ] = False,
    plan: Planned = False,
    mechanism: Own = None,
    latex: Latex = None,
    jobs: Jobs = None,
    backend: Where = "threads",
    slurm_set: SlurmSet = None,
    out: Annotated[Path, typer.Option(help="Folder for reports; the page is written to compare/ in it.")] = (
        Path("reports")
    ),
    open_: Open = False,
    yes: Yes = False,
    json_: Json = False,
) -> None:
    """Compare marker/AQM schemes with the same tuning budget, at equal mean queueing delay."""
    from ..experiment.mechanisms import UnknownSenderError
    from ..metrics.latex import latex as tables_for_paper
    from ..studies.compare import NoContractError, SchemeFileError, TuneError, UnknownSchemeError
    from ..studies.compare import compare as work
    from ..studies.compare import plan as planned
    from ..studies.compare.page import tables_of
    from ..studies.compare.run import CACHE
    from ..studies.reproduce.report.overview import check_overview

    check_latex(latex)
    names = names_of(schemes, "--schemes")
    if set_ and not files:
        raise Refused("--set: name the experiment file whose value it overrides")
    overrides = overrides_of(set_)
    tcps, count = names_of(tcp, "--tcp"), count_of(seeds, "a comparison")
    try:
        # In this process nothing is registered but what --mechanism names.
        own = list(registered()) if mechanism else []
        made = planned(files, quick, names, own, overrides, tcps, count)
    except (
        UnknownSchemeError, UnknownSenderError, SchemeFileError, TuneError, NoContractError,
    ) as error:  # fmt: skip
        raise Refused(str(error)) from None
    if plan:
        studies = len(made.studies)
        what = f"{len(made.schemes)} schemes on {studies} experiment{'s' * (studies != 1)}"
        print_plan(made, what, jobs, CACHE, json_)
        return
    affordable(made.packets, yes, made.runs)
    announce(
        [(s.scenario, len(s.lengths) * s.seeds * len(made.schemes)) for s in made.studies], jobs, kept=CACHE
    )
    check_folder(out)
    check_overview(out)
    with made_by(backend, jobs, slurm_set, CACHE) as where, resumable(CACHE, made.runs) as tell:
        comparison = work(
            files,
            quick,
            names,
            out=out,
            progress=tell,
            own=own,
            overrides=overrides,
            tcps=tcps,
            seeds=count,
            backend=where,
        )
    write_latex(latex, lambda: tables_for_paper(tables_of(comparison)))
    if json_:
        emit(comparison.to_json())
    else:
        say(as_text(comparison))
    if open_ and comparison.page is not None:
        webbrowser.open(comparison.page.resolve().as_uri())


def as_text(comparison: Comparison) -> str:
    """Who wins where, as plain text."""
    from ..studies.compare.measure import MEASURES, RANKED
    from ..studies.compare.page import in_short, shown

    lines = list(in_short(comparison))
    if comparison.quick:
        lines.insert(0, "Quick mode: few seeds and settings, short runs: few differences are significant.")
    for one in comparison.outcomes:
        delays = ", ".join(f"{1e3 * d:.3g}" for d in one.delays)
        lines += ["", f"{one.study.title}, {one.study.tcp_title}, at {delays} ms"]
        for measure in RANKED:
            if measure.id in one.rankings:
                ranking = one.rankings[measure.id]
                best = f"{comparison.title(ranking.best)} {shown(measure, ranking.values[ranking.best])}"
                alike = ", ".join(comparison.title(s) for s in ranking.alike)
                lines.append(
                    f"  {measure.title:<15}{best}{f'; statistically tied: {alike}' if alike else ''}"
                )
        if one.price is not None:
            cost = MEASURES["best_effort"]
            best = f"{comparison.title(one.price.best)} {shown(cost, one.price.values[one.price.best])}"
            alike = ", ".join(comparison.title(s) for s in one.price.alike)
            tied = f"; statistically tied: {alike}" if alike else ""
            lines.append(f"  {cost.title:<15}{best}{tied}")
        absent = [comparison.title(s) for s in one.frontiers if s not in one.reaching]
        if absent:
            lines.append(f"  Not reached: {', '.join(absent)}")
        found = comparison.tuned(one)
        lines += ["", text_table(*_settings(found)), "", found[0].toml.rstrip()]
    if comparison.page is not None:
        where = comparison.page.parent / "settings"
        lines += ["", f"Page: {comparison.page}", f"Each scheme at its best setting: {where}"]
    return "\n".join(lines)


def _settings(found: list[Tuned]) -> tuple[list[str], list[list[str]]]:
    """Every scheme at its best setting."""
    free = any("best_effort" in t.means for t in found)
    rows = []
    for one in found:
        kept = "kept" if "kept" in one.means else "fairness"
        row = [
            one.scheme.title,
            quantity(one.length, "s", 3),
            f"{100 * one.means[kept]:.1f} %" if kept == "kept" else f"{one.means[kept]:.4f}",
        ]
        if free:
            row.append(f"{100 * one.means['best_effort']:.1f} %" if "best_effort" in one.means else "–")
        rows.append([*row, quantity(one.means["delay"], "s", 3)])
    kept = "contract kept" if any("kept" in t.means for t in found) else "fairness"
    return ["at its best setting", "T", kept, *(["best effort"] if free else []), "delay"], rows
