"""`inprofile compare`, `suite`: schemes on the same experiments, at equal delay; tests of disciplines."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..metrics.quantity import quantity
from ..metrics.summary import text_table
from ..own.registry import registered
from ..run.storage import FolderInUse, check_folder
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
    from ..studies.suite import SuitePlan
    from ..studies.suite.scenarios import About


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
    _told(comparison.to_json() if json_ else as_text(comparison), comparison.page if open_ else None)


def _told(found: Mapping[str, Any] | str, page: Path | None) -> None:
    """Print the answer, as text or as an object, and show its page if that was asked for."""
    if isinstance(found, str):
        say(found)
    else:
        emit(found)
    if page is not None:
        webbrowser.open(page.resolve().as_uri())


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


@guarded
def suite(
    name: Annotated[str, typer.Argument(metavar="SUITE", help="Which: rfc7928 or l4s.")] = "rfc7928",
    aqm: Annotated[
        str | None, option("Disciplines and schemes by name, beside drop-tail; default: all.", "A,B,…")
    ] = None,
    scenario: Annotated[str | None, option("Scenarios by name or section; default: all.", "A,B,…")] = None,
    tcp: Annotated[
        str | None,
        option(
            "What rfc7928's standard senders have: newreno (recovery as in Linux; the default), linux"
            " (CUBIC), rfc, rfc-cubic, bbr, prague, dctcp, ledbat, copa, dcqcn.",
            "NAME",
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(metavar="N", help="Seeds 1 … N; default: 10 (l4s: 5), with --quick 2.")
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Experiment files: written there, and nothing is run, if there are none; else these are run,"
            " not those that come with Inprofile.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer seeds and shorter runs; the report says so.")
    ] = False,
    plan: Planned = False,
    mechanism: Own = None,
    latex: Latex = None,
    jobs: Jobs = None,
    backend: Where = "threads",
    slurm_set: SlurmSet = None,
    out: Annotated[Path, typer.Option(help="Folder for reports; the report is written to SUITE/ in it.")] = (
        Path("reports")
    ),
    open_: Open = False,
    yes: Yes = False,
    json_: Json = False,
) -> None:
    """Run RFC 7928's scenarios, or L4S's coexistence map, for every queue discipline; write the report."""
    from ..metrics.latex import latex as tables_for_paper
    from ..studies.suite import (
        CACHE,
        SUITES,
        UnknownContestantError,
        UnknownScenarioError,
        UnknownTcpError,
        read,
        write_files,
    )
    from ..studies.suite import plan as planned
    from ..studies.suite import suite as work
    from ..studies.suite.tables import as_text, tables_of

    check_latex(latex)
    if name not in SUITES:
        raise Refused(f'there is no suite "{name}": write {", ".join(SUITES)}')
    if files is not None and not (files / "suite.toml").exists():
        check_folder(files)
        about = read(name)
        _check_free(about, files)
        written = write_files(about, files)
        if json_:
            emit({"written": [str(path) for path in written]})
        else:
            say(f"{len(written)} files are in {files}: change them, and run them by the same command.")
        return
    count = count_of(seeds, "a suite")
    aqms, scenarios = names_of(aqm, "--aqm"), names_of(scenario, "--scenario")
    own = list(registered()) if mechanism else []
    try:
        made = planned(
            name, aqms=aqms, scenarios=scenarios, tcp=tcp, quick=quick, seeds=count, files=files, own=own
        )
    except (UnknownContestantError, UnknownScenarioError, UnknownTcpError, ValueError) as error:
        raise Refused(str(error)) from None
    if plan:
        _print_plan(made, jobs, json_)
        return
    affordable(made.packets, yes or files is None, made.runs)
    announce([(one, made.seeds) for one in made.work.values()], jobs, kept=CACHE)
    check_folder(out)
    if other := _otherwise(made, out):
        sys.stderr.write(
            f"{out / name} has a report with other options ({other}): it is replaced when this one is done."
            f" --out keeps both; its runs stay in {CACHE}.\n"
        )
    with made_by(backend, jobs, slurm_set, CACHE) as where, resumable(CACHE, made.runs) as tell:
        done = work(
            name,
            aqms=aqms,
            scenarios=scenarios,
            tcp=tcp,
            quick=quick,
            seeds=count,
            files=files,
            own=own,
            backend=where,
            out=out,
            progress=tell,
        )
    write_latex(latex, lambda: tables_for_paper(tables_of(done)))
    answer = f"{as_text(done)}\n\nPage: {done.page}"
    _told({**done.to_json(), "page": str(done.page)} if json_ else answer, done.page if open_ else None)


def _otherwise(made: SuitePlan, out: Path) -> str:
    """The inputs of an earlier report in the folder, if they differ; raise FolderInUse if it is none."""
    from ..studies.suite.page import earlier

    found = earlier(out, made.about.name)
    if found is None:
        return ""
    here = made.to_json()

    def made_of(of: dict[str, Any]) -> list[object]:
        return [of["quick"], of["seeds"], of["tcp"], of["contestants"], of["scenarios"]]

    there = {
        **found,
        "tcp": found["tcp"]["id"],
        **{what: [x["id"] for x in found[what]] for what in ("contestants", "scenarios")},
    }
    if made_of(there) == made_of(here):
        return ""
    counts = (there["seeds"], "seed"), *((len(there[w + "s"]), w) for w in ("contestant", "scenario"))
    parts = [*(f"{n} {what}{'s' * (n != 1)}" for n, what in counts), f"--tcp {there['tcp']}"]
    parts.extend(["--quick"] * there["quick"])
    return ", ".join(parts)


def _check_free(about: About, files: Path) -> None:
    """Raise FolderInUse where an experiment of one's own would be written over."""
    names = {path.name: path.read_bytes() for path in sorted(about.folder.glob("*.toml"))}
    taken = [n for n, text in names.items() if (files / n).exists() and (files / n).read_bytes() != text]
    if taken:
        shown = ", ".join(taken[:3]) + ", …" * (len(taken) > 3)
        raise FolderInUse(
            f"{files} has no suite.toml, and other files under the suite's names ({shown}): choose a new or"
            " an empty folder, or put suite.toml back"
        )


def _print_plan(plan: SuitePlan, jobs: int | None, as_json: bool) -> None:
    from ..studies.suite import CACHE

    what = f"{len(plan.contestants)} contestants in {len(plan.definitions)} scenarios"
    print_plan(plan, what, jobs, CACHE, as_json)
    if as_json:
        return
    for (scenario, contestant), why in plan.absent.items():
        say(f"Not run: {scenario}{f', {contestant}' if contestant else ''}: {why}")
