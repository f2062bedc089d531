"""`inprofile reproduce`, `atlas`: the papers' experiments, judged claim by claim; where each claim holds.

An atlas asks it over a paper's readings and the inputs that it does not state.
"""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._input import MOST_POINTS
from ..run.storage import check_folder
from .common import Jobs, Json, Open, Planned, Refused, argument, emit, guarded, option, say, shortened
from .execution import SlurmSet, Where, announce, effort, made_by, resumable

if TYPE_CHECKING:
    from ..papers import Paper
    from ..papers.claim import Judged
    from ..papers.report import Report
    from ..papers.verdicts import Answered
    from ..studies.atlas import Atlas, AtlasPlan
    from ..studies.reproduce import ReproductionPlan


@guarded
def reproduce(
    papers: Annotated[
        list[str] | None,
        argument("Papers to reproduce, by name or as a folder with a paper.toml; default: all.", "[PAPER]…"),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer seeds; the report says so.")] = False,
    plan: Planned = False,
    full: Annotated[
        bool,
        typer.Option(
            "--full", help="Also run the crossed readings, further set-ups, and sweeps of assumed parameters."
        ),
    ] = False,
    sweeps: Annotated[bool, typer.Option("--sweeps", hidden=True)] = False,
    jobs: Jobs = None,
    backend: Where = "threads",
    slurm_set: SlurmSet = None,
    out: Annotated[Path, typer.Option(help="Folder for reports, one subfolder per paper.")] = Path("reports"),
    figures: Annotated[str | None, option("Also write every figure for print: svg or pdf.")] = None,
    atlas: Annotated[
        bool,
        typer.Option(
            "--atlas", help="Recompute each paper's atlas (inprofile atlas --plan says how long it takes)."
        ),
    ] = False,
    senders: Annotated[
        bool,
        typer.Option(
            "--senders",
            help="Also run every scheme and claim of the primary set-ups with Linux's CUBIC, Prague and BBR.",
        ),
    ] = False,
    open_: Open = False,
    json_: Json = False,
) -> None:
    """Reproduce papers: run their experiments, judge every claim, and write a report for each."""
    from ..charts.page import FORMATS
    from ..papers import PaperError, UnknownPaperError, names, rerun
    from ..papers.experiment import examples
    from ..studies import reproduce as work
    from ..studies.reproduce.report.overview import check_overview

    if figures is not None and figures not in FORMATS:
        raise Refused(f"--figures {figures}: choose from {', '.join(FORMATS)}")
    if sweeps:
        raise Refused("--sweeps is now part of --full: write --full")
    wanted = papers or names()
    try:
        plans = [work.plan(name, quick, full) for name in wanted]
    except (PaperError, UnknownPaperError) as error:
        raise Refused(str(error)) from None
    if plan:
        _print_plan(plans, jobs, json_, senders)
        return
    check_folder(out)
    check_overview(out)
    told = sum(p.cpu_seconds for p in plans)
    if senders:
        told += sum(rerun.plan(p.paper, p.quick).cpu_seconds for p in plans)
    alone = sum(p.alone for p in plans)
    announce(examples([(p.paper, [*p.jobs]) for p in plans]), jobs, told=told, alone=alone, kept=work.CACHE)
    runs = sum(p.runs for p in plans)
    with made_by(backend, jobs, slurm_set, work.CACHE) as where, resumable(work.CACHE, runs) as tell:
        try:
            reports = work.reproduce(
                wanted,
                quick,
                full,
                out=out,
                progress=tell,
                figures=figures,
                atlas=atlas,
                senders=senders,
                backend=where,
            )
        except PaperError as error:
            raise Refused(str(error)) from None
    if json_:
        from ..studies.reproduce.report.data import report_json

        emit({"papers": [report_json(report) for report in reports]})
    else:
        for report in reports:
            say(as_text(report))
    if open_:
        for report in reports:
            if report.page is not None:
                webbrowser.open(report.page.resolve().as_uri())


def _print_plan(plans: list[ReproductionPlan], jobs: int | None, as_json: bool, senders: bool) -> None:
    from ..papers import rerun
    from ..studies.reproduce import CACHE

    beside = [rerun.plan(p.paper, p.quick) for p in plans] if senders else []
    if as_json:
        entries = [p.to_json() for p in plans]
        for entry, b in zip(entries, beside, strict=False):
            entry["senders"] = {"runs": b.runs, "cpu_seconds": round(b.cpu_seconds, 1)}
        emit({"papers": entries})
        return
    for p in plans:
        experiments = sum(1 for _ in p.jobs)
        takes = effort(p.cpu_seconds, jobs, CACHE, p.alone)
        say(f"{p.paper.name}: {experiments} experiments, {p.runs} runs, {takes}")
    for b in beside:
        name = f"{b.paper.name} under today's TCP"
        say(f"{name}: {b.runs} runs, {effort(b.cpu_seconds, jobs, CACHE)}")


#: Room for a mean and half its interval, each with its unit.
_COLUMN = 34


def as_text(report: Report) -> str:
    """The verdicts and the paper's tables, as plain text."""
    from ..papers.claim import Verdict

    paper = report.paper
    lines = [f"{paper.short} ({paper.reference}), {report.seeds} seeds per scheme"]
    if report.quick:
        lines.append("Quick mode: fewer seeds than in a full run; verdicts may change.")
    fitted = {s.id: " *" * s.fitted for s in report.shown}
    titles = [s.title + fitted[s.id] for s in report.shown]
    # A verdict, and how many comparisons hold and are opposite of how many.
    wide = max(*map(len, titles), max(len(v.words) for v in Verdict) + 12) + 2
    lines += ["", "claim  " + "".join(title.ljust(wide) for title in titles)]
    found = {(j.claim, j.setup): f"{j.verdict.words} {_counted(j)}".rstrip() for j in report.judged}
    found |= {key: f"{Verdict(a['verdict']).words} {_kept(a)}" for key, a in report.kept.items()}
    for claim in paper.claims:
        missing = "the same" if claim.flag("once") else "not run"
        words = [found.get((claim.id, s.id), missing) for s in report.shown]
        lines.append(f"{claim.id:<7}" + "".join(word.ljust(wide) for word in words) + claim.text)
    lines += ["", "In parentheses: comparisons that hold / all comparisons; −n: n significantly opposite."]
    if report.kept and (known := report.committed) is not None:
        lines.append(
            f"† Not all of its experiments were run here: the verdict committed {known['date']},"
            f" of Inprofile {known['version']} with --full."
        )
    if any(fitted.values()):
        lines.append("* found after seeing the paper's numbers")
    return "\n".join(line.rstrip() for line in [*lines, *_tables(report)])


def _counted(judged: Judged) -> str:
    return _counts(judged.count("holds"), judged.count("opposite"), len(judged.comparisons))


def _kept(answered: Answered) -> str:
    from ..papers.verdicts import total

    return f"{_counts(answered['holds'], answered['opposite'], total(answered))}†"


def _counts(holds: int, opposite: int, of: int) -> str:
    return f"({holds}/{of}{f' −{opposite}' if opposite else ''})" if of else ""


def _tables(report: Report) -> list[str]:
    """The paper's tables beside ours, and where the page is."""
    from ..metrics.quantity import pm, quantity
    from ..metrics.stats import estimate
    from ..papers.report import TableRow, bounds_of
    from ..studies.reproduce.report.data import table

    lines: list[str] = []
    rows: dict[tuple[str, str], dict[str, dict[str, TableRow]]] = {}
    for r in table(report):
        if not r["variant"]:
            rows.setdefault((r["table"], r["what"]), {}).setdefault(r["label"], {})[r["setup"]] = r
    for (where, what), by_label in rows.items():
        title = f"{where}: {what}"
        wide = max(30, 2 + max(map(len, [title, *by_label])))
        heads = "".join(s.title.ljust(_COLUMN) for s in report.setups)
        lines += ["", title.ljust(wide) + "paper".ljust(14) + heads]
        for label, found in by_label.items():
            first = next(iter(found.values()))
            printed = "" if first["paper"] is None else quantity(first["paper"], first["unit"])
            cells = []
            for setup in report.setups:
                if setup.id not in found:
                    cells.append("–".ljust(_COLUMN))
                    continue
                r = found[setup.id]
                cells.append(pm(estimate(r["values"], bounds_of(r)), r["unit"]).ljust(_COLUMN))
            lines.append(label.ljust(wide) + printed.ljust(14) + "".join(cells))
    lines += _sources(report.paper)
    if report.page is not None:
        lines += ["", f"Report: {report.page}"]
    return lines


def _sources(paper: Paper) -> list[str]:
    """What was at hand of a paper that says so, what was checked, and parameters of unknown origin."""
    from ..papers.parameters import unlisted
    from ..papers.quotes import parts

    lines = [f"{part.title} ({part.where}): {part.words}" for part in parts(paper.top, paper.folder)]
    if lines:
        lines = ["", "At hand", *lines]
        unknown = [f"{file}: {leaf}" for file, leaf in unlisted(paper)]
        if unknown:
            lines += ["", "Neither quoted nor assumed: list them in paper.toml", *unknown]
    return lines


@guarded
def atlas(
    papers: Annotated[
        list[str] | None,
        argument("Papers, by name or as a folder with a paper.toml; default: all.", "[PAPER]…"),
    ] = None,
    claim: Annotated[list[str] | None, option("Only this claim. Repeatable.", "ID", "--claim")] = None,
    budget: Annotated[int, typer.Option(help="Number of points per paper.")] = 48,
    plan: Planned = False,
    jobs: Jobs = None,
    backend: Where = "threads",
    slurm_set: SlurmSet = None,
    out: Annotated[Path | None, option("Also write each paper's atlas.json to OUT/PAPER.")] = None,
    json_: Json = False,
) -> None:
    """Map where each claim holds: all claims, judged over readings of the text × unstated inputs."""
    if budget < 1:
        raise Refused(f"--budget {budget} visits no point: give 1 or more, such as --budget 48")
    if budget > MOST_POINTS:
        given = shortened(str(budget), 60)
        raise Refused(f"--budget {given} is more than {MOST_POINTS} points: give fewer, such as --budget 48")
    if out is not None:
        check_folder(out)

    from ..experiment.scenario import ScenarioError
    from ..papers import PaperError, UnknownPaperError, names
    from ..papers.experiment import examples
    from ..papers.factors import FactorError
    from ..studies import atlas as work
    from ..studies.atlas.store import NAME, atlas_json, write

    try:
        plans = work.plans(papers or names(), budget, claim)
    except (PaperError, UnknownPaperError, work.UnknownClaimError) as error:
        raise Refused(str(error)) from None
    except ScenarioError:
        raise
    except (FactorError, ValueError) as error:
        raise Refused(f"no atlas: {error}") from None
    if plan:
        _print_atlas_plan(plans, jobs, json_)
        return
    announce(
        examples([(p.paper, p.jobs) for p in plans]),
        jobs,
        told=sum(p.cpu_seconds for p in plans),
        kept=work.CACHE,
    )
    before, total = 0, sum(p.runs for p in plans)
    made = []
    with made_by(backend, jobs, slurm_set, work.CACHE) as where, resumable(work.CACHE, total) as tell:
        for planned in plans:

            def more(done: int, runs: int, what: str, before: int = before) -> None:
                tell(min(before + done, total), total, what)

            try:
                found = work.make(planned, progress=more, backend=where)
            except ValueError as error:
                raise Refused(str(error)) from None
            before += planned.runs
            if out is not None:
                folder = out / planned.paper.name
                folder.mkdir(parents=True, exist_ok=True)
                write(found, folder / NAME)
            made.append(found)
    if json_:
        emit({"papers": [atlas_json(found) for found in made]})
    else:
        for each in made:
            typer.echo(atlas_as_text(each))


def _print_atlas_plan(plans: list[AtlasPlan], jobs: int | None, as_json: bool) -> None:
    from ..studies.atlas import CACHE

    if as_json:
        emit({"papers": [p.to_json() for p in plans]})
        return
    for p in plans:
        typer.echo(
            f"{p.paper.name}: {len(p.points)} points over {len(p.factors)} readings and inputs,"
            f" {p.runs} runs, {effort(p.cpu_seconds, jobs, CACHE)}"
        )


def atlas_as_text(atlas: Atlas) -> str:
    """Shares, decisive factors and the nearest point where it holds, a line a claim."""
    planned = atlas.plan
    head = (
        f"{planned.paper.short} ({planned.paper.reference}): {len(atlas.visited)} points,"
        f" {len(atlas.invalid)} of them invalid, {planned.seeds} seeds each"
    )
    titles = f"{'claim':<7}{'holds':>7}{'open':>7}{'opp.':>7}{'undec.':>8}"
    lines = [head, "", f"{titles}   decisive; nearest point where it holds"]
    for a in atlas.answers:
        shares = [f"{100 * a.shares[k]:.0f} %" for k in ("holds", "open", "opposite", "undecidable")]
        where = "nowhere"
        if a.nearest is not None:
            changed = a.nearest.planned.changed(planned.factors)
            where = ", ".join(f"{k} = {v}" for k, v in changed.items()) or "the default"
        lines.append(
            f"{a.id:<7}{shares[0]:>7}{shares[1]:>7}{shares[2]:>7}{shares[3]:>8}"
            f"   {', '.join(a.decisive) or 'none'}; {where}"
        )
    for v in atlas.invalid:
        there = ", ".join(f"{k} = {x}" for k, x in v.planned.changed(planned.factors).items())
        lines.append(f"invalid: {there or 'the default'}: {v.invalid}")
    return "\n".join(lines)
