"""`inprofile live`: an experiment with real hosts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ..run.live import NotLive, hindrance
from ..run.storage import check_place
from .common import File, Json, Out, Refused, Set, Trace, emit, guarded, open_scenario, say, seeds_of
from .execution import progress
from .run import as_json, as_text

if TYPE_CHECKING:
    from ..run.results import Result

INSIDE = "INPROFILE_INSIDE_UNSHARE"
"""Set in a process that was started again in a user namespace, so that it isn't tried twice."""


@guarded
def live(
    file: File,
    seeds: Annotated[
        str | None, typer.Option(metavar="N|A..B", help="Seeds to run: N for 1 … N, or a range; default: 1.")
    ] = None,
    set_: Set = None,
    out: Out = None,
    trace: Trace = False,
    json_: Json = False,
) -> None:
    """Run an experiment with real hosts: the kernel's TCP through the same queues and links, in wall time.

    Needs Linux, and root or user namespaces. Hosts are network namespaces of this process, gone when it is.
    """
    scenario = open_scenario(file, set_)
    which = 1 if seeds is None else seeds_of(seeds)
    if out is not None:
        check_place(out)
    hindered = hindrance()
    if hindered is not None:
        in_user_namespace(hindered)
    try:
        with progress(f"{scenario.title}, real hosts", "s") as tell:
            result = scenario.live(which, trace=trace, progress=lambda done, of: tell(int(done), round(of)))
    except NotLive as error:
        raise Refused(f"{scenario.file} can't be run with real hosts:\n{error}") from None
    if out is not None:
        result.write(out)
    if json_:
        emit({**as_json(result, scenario.file, every=True), "live": kept_time(result)})
    else:
        say(as_text(result))
        say("\n" + time_text(result))


def in_user_namespace(hindered: str) -> NoReturn:
    """Start this command again where it may make namespaces; raise Refused where nobody may."""
    unshare = shutil.which("unshare")
    if os.environ.get(INSIDE) or unshare is None:
        raise Refused(hindered)
    trial = subprocess.run([unshare, "-Urn", "true"], capture_output=True, text=True, check=False)  # noqa: S603
    if trial.returncode != 0:
        why = trial.stderr.strip().removeprefix("unshare: ")
        raise Refused(
            f"{hindered}; here they are not ({why}): run it as root, or see"
            " user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns"
            " (inside a chroot nobody may)"
        )
    sys.stdout.flush()
    sys.stderr.flush()
    arguments = [unshare, "-Urn", sys.executable, "-m", "inprofile", *sys.argv[1:]]
    os.execve(unshare, arguments, {**os.environ, INSIDE: "1"})  # noqa: S606


def kept_time(result: Result) -> list[dict[str, Any]]:
    """How each run kept time."""
    return [dict(run) for run in result.provenance.live or ()]


def time_text(result: Result) -> str:
    """The same for a reader, and what the kernel does otherwise."""
    runs = kept_time(result)
    late = [f"{1e6 * max(run[key] for run in runs):.0f}" for key in ("late_p50", "late_p99", "late_most")]
    first = f"Packets reached their hosts {late[0]} µs late (median), {late[1]} µs (99th percentile)"
    priority = "" if all(run["real_time"] for run in runs) else "; without real-time priority"
    lines = [f"{first}, {late[2]} µs (maximum; worst of {len(runs)} run{'s' * (len(runs) != 1)}){priority}."]
    for run in runs:
        for flow in run["datagrams"]:
            lines.append(
                f"{flow['flow']}, seed {run['seed']}: {flow['sent']:,} datagrams sent,"
                f" {flow['received']:,} received, {flow['lost']:,} lost by their numbers;"
                f" sent late by {1e6 * flow['sent_late_most']:.0f} µs at most."
            )
    notes = {note: None for run in runs for note in run["notes"]}
    return "\n".join([*lines, *(f"- {note}" for note in notes)])
