"""`inprofile suite`: the tests that the field judges queue disciplines by."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    Yes,
    check_latex,
    count_of,
    emit,
    guarded,
    names_of,
    option,
    say,
    write_latex,
)
from .execution import SlurmSet, Where, affordable, announce, made_by, print_plan, resumable

if TYPE_CHECKING:
    from ..studies.suite import SuitePlan
    from ..studies.suite.scenarios import About


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
    if json_:
        emit({**done.to_json(), "page": str(done.page)})
    else:
        say(as_text(done))
        say(f"\nPage: {done.page}")
    if open_ and done.page is not None:
        webbrowser.open(done.page.resolve().as_uri())


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
