"""`inprofile atlas`: where each claim holds, over a paper's readings and the inputs it does not state."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._input import MOST_POINTS
from ..run.storage import check_folder
from .common import Jobs, Json, Planned, Refused, emit, guarded, shortened
from .effort import announce, effort
from .execution import SlurmSet, Where, made_by, resumable

if TYPE_CHECKING:
    from ..studies.atlas import Atlas, AtlasPlan


@guarded
def atlas(
    papers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PAPER]…",
            help="Papers, by name or as a folder with a paper.toml; default: all.",
            show_default=False,
        ),
    ] = None,
    claim: Annotated[
        list[str] | None,
        typer.Option("--claim", metavar="ID", help="Only this claim. Repeatable.", show_default=False),
    ] = None,
    budget: Annotated[int, typer.Option(help="Number of points per paper.")] = 48,
    plan: Planned = False,
    jobs: Jobs = None,
    backend: Where = "threads",
    slurm_set: SlurmSet = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Also write each paper's atlas.json to OUT/PAPER.", show_default=False),
    ] = None,
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
        _print_plan(plans, jobs, json_)
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
            typer.echo(as_text(each))


def _print_plan(plans: list[AtlasPlan], jobs: int | None, as_json: bool) -> None:
    from ..studies.atlas import CACHE

    if as_json:
        emit({"papers": [p.to_json() for p in plans]})
        return
    for p in plans:
        typer.echo(
            f"{p.paper.name}: {len(p.points)} points over {len(p.factors)} readings and inputs,"
            f" {p.runs} runs, {effort(p.cpu_seconds, jobs, CACHE)}"
        )


def as_text(atlas: Atlas) -> str:
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
