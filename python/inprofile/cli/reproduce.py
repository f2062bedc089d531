"""`inprofile reproduce`: the papers' experiments, judged claim by claim."""

from __future__ import annotations

import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import INTERRUPTED, Jobs, Json, Refused, emit, guarded

if TYPE_CHECKING:
    from ..reproduce import Plan, Report


@guarded
def reproduce(
    papers: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PAPER]…", help="Which papers; all if left out.", show_default=False),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer seeds; the report says so.")] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be run and how long it takes, and stop.")
    ] = False,
    sweeps: Annotated[
        bool, typer.Option("--sweeps", help="Vary more of the assumed parameters, for every topology.")
    ] = False,
    jobs: Jobs = None,
    out: Annotated[Path, typer.Option(help="The folder for the reports: one folder a paper.")] = Path(
        "reports"
    ),
    open_: Annotated[bool, typer.Option("--open", help="Show the report in a browser.")] = False,
    json_: Json = False,
) -> None:
    """Reproduce papers: run their experiments, judge every claim, write a report."""
    from .. import reproduce as work
    from ..papers import UnknownPaperError, names

    wanted = papers or names()
    try:
        plans = [work.plan(name, quick, sweeps) for name in wanted]
    except UnknownPaperError as error:
        raise Refused(str(error)) from None
    if plan:
        _print_plan(plans, jobs, json_)
        return
    counted = [0, sum(p.runs for p in plans)]
    try:
        with _progress() as tell:

            def count(done: int, total: int, what: str) -> None:
                counted[:] = [done, total]
                tell(done, total, what)

            reports = work.reproduce(wanted, quick, sweeps, jobs, out, progress=count)
    except KeyboardInterrupt:
        sys.stderr.write(
            f"Interrupted after {counted[0]} of {counted[1]} runs. What is finished is kept in {work.CACHE}:"
            " the same command goes on from there.\n"
        )
        raise typer.Exit(INTERRUPTED) from None
    if json_:
        emit({"papers": [report.to_json() for report in reports]})
    else:
        for report in reports:
            typer.echo(as_text(report))
    if open_:
        for report in reports:
            if report.page is not None:
                webbrowser.open(report.page.resolve().as_uri())


def _print_plan(plans: list[Plan], jobs: int | None, as_json: bool) -> None:
    from .._runner import threads
    from ..reproduce import CACHE, minutes

    if as_json:
        emit({"papers": [p.to_json() for p in plans]})
        return
    cores = threads(jobs)
    for p in plans:
        experiments = sum(1 for _ in p.jobs)
        typer.echo(
            f"{p.paper.name}: {experiments} experiments, {p.runs} runs,"
            f" about {minutes(p.cpu_seconds / cores)} on {cores} core{'s' * (cores != 1)}."
            f" Runs already in {CACHE} are not repeated."
        )


def as_text(report: Report) -> str:
    """Table 1 and the verdicts, as plain text."""
    from ..judge import Verdict
    from ..stats import estimate

    paper = report.paper
    by = f"{paper.about['authors'][0]} {paper.about['year']}"
    lines = [f"{paper.about['short']} ({by}), {report.seeds} seeds a scheme"]
    if report.quick:
        lines.append("Quick mode: fewer seeds than a judged run has; verdicts may change.")
    wide = max(len(s["title"]) for s in paper.setups) + 2
    lines += ["", "claim  " + "".join(s["title"].ljust(wide + 6) for s in paper.setups)]
    verdicts = {(j.claim, j.setup): j.verdict for j in report.judged}
    for claim in paper.claims:
        words = [Verdict(verdicts[claim["id"], s["id"]]).words for s in paper.setups]
        lines.append(f"{claim['id']:<7}" + "".join(word.ljust(wide + 6) for word in words) + claim["text"])
    lines += [
        "",
        "fairness index".ljust(38) + "paper   " + "".join(s["title"].ljust(24) for s in paper.setups),
    ]
    rows = paper.module("claims").table(paper, report.cells)
    for topology in paper.topologies:
        for scheme in paper.schemes:
            found = {
                r["setup"]: r
                for r in rows
                if (r["topology"], r["scheme"], r["jitter"]) == (topology["id"], scheme["id"], False)
            }
            printed = next(iter(found.values()))["paper"]
            cells = []
            for setup in paper.setups:
                e = estimate(found[setup["id"]]["values"])
                half = f" ± {e.half:.4f}" if e.half is not None else ""
                cells.append(f"{e.mean:.4f}{half}".ljust(24))
            label = f"{topology['title']}, {scheme['title']}".ljust(38)
            lines.append(f"{label}{'' if printed is None else format(printed, '.3f'):<8}" + "".join(cells))
    if report.page is not None:
        lines += ["", f"Report: {report.page}"]
    return "\n".join(line.rstrip() for line in lines)


@contextmanager
def _progress() -> Iterator[Callable[[int, int, str], None]]:
    """Show a bar on standard error while a terminal looks on; silent otherwise."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def tell(done: int, total: int, what: str) -> None:
            bar.update(task, completed=done, total=total, description=what)

        yield tell
