"""`inprofile explain`: why a flow got what it got."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._input import visible
from ..metrics.quantity import number
from .common import Jobs, Json, Refused, Set, Yes, argument, emit, guarded, open_scenario, option, say
from .execution import TRACED, affordable, announce, progress

if TYPE_CHECKING:
    from ..experiment.scenario import Scenario
    from ..run.results import Result
    from ..studies.explain import Explanation, Fate
    from ..studies.explain.cause import Cause
    from ..studies.explain.removal import Removed

_WIDTH = 60


@guarded
def explain(
    result: Annotated[
        Path,
        argument(
            "A folder written by run --out, or an experiment file, which is then run with seed 1.", "RESULT"
        ),
    ],
    flow: Annotated[str, option("The flow, by name (tcp.0) or by number from 0, or a group of flows (tcp).")],
    try_: Annotated[
        bool,
        typer.Option(
            "--try",
            help="Run the experiment again without the cause that is named, with the same seeds, and say"
            " whether that mended the flow.",
        ),
    ] = False,
    set_: Set = None,
    jobs: Jobs = None,
    yes: Yes = False,
    json_: Json = False,
) -> None:
    """Explain why a flow got the rate it got: contract, marking, losses, RTOs; and what starved it."""
    from ..studies.explain import UnknownFlow
    from ..studies.explain import explain as reason

    opened = _open(result, set_, jobs, yes)
    try:
        found = reason(opened, flow)
    except UnknownFlow as error:
        raise Refused(str(error)) from None
    outcome = _tried(opened, found, jobs, yes) if try_ else ()
    if json_:
        emit(found.to_json() | ({"tried": [one.to_json() for one in outcome]} if try_ else {}))
    else:
        say(as_text(found, [one.words() for one in outcome]))
        if try_ and not found.causes:
            why = "it got what it should" if found.goal is None else "no cause was found"
            print(f"--try: nothing was run again for {visible(found.flow)}: {why}.", file=sys.stderr)


def _tried(result: Result, found: Explanation, jobs: int | None, yes: bool) -> Sequence[Removed]:
    """What the flow got without each cause that was named."""
    from ..experiment.scenario import Scenario
    from ..studies.explain.removal import removed

    if not found.causes:
        return ()
    if result.provenance.live is not None:
        raise Refused("--try runs the simulator again, and these hosts were real: give the experiment's file")
    scenario = Scenario.again(result.provenance)
    affordable(len(found.causes) * scenario.expected_packets(found.seeds), yes, len(found.seeds))
    announce([(scenario, (1 if found.together else len(found.causes)) * len(found.seeds))], jobs)

    def run(changed: Scenario, seeds: Sequence[int]) -> Result:
        from ..run.experiments import run_many
        from ..run.pool import Local

        with progress("without the cause") as tell:
            return run_many([(changed, list(seeds))], Local(jobs, tell.under_way), tell)[0]

    return removed(scenario, found, run)


def _open(place: Path, overrides: list[str] | None, jobs: int | None, yes: bool) -> Result:
    """The result in a folder, or that of one traced run of a file."""
    if not place.is_dir():
        scenario = open_scenario(place, overrides)
        affordable(scenario.expected_packets(seeds=1), yes, 1, traced=True)
        announce([(scenario, TRACED)], 1)
        from ..run.experiments import run_many
        from ..run.pool import Local

        with progress(scenario.title) as tell:
            return run_many([(scenario, [1])], Local(jobs, tell.under_way), tell, trace=True)[0]
    if overrides:
        raise Refused(
            f"--set changes an experiment before it runs; {place} is a result: give the experiment's file"
        )
    from ..run.results import read

    return read(place)


def as_text(found: Explanation, tried: Sequence[str] = ()) -> str:
    """Words, where its packets went, its window; and last the cause, how to remove it, and what that did."""
    seeds = f"{len(found.seeds)} seeds" if len(found.seeds) > 1 else f"seed {found.seeds[0]}"
    parts = [f"{found.flow}, {seeds}", "\n".join(f"- {sentence}" for sentence in found.findings)]
    if found.fates:
        parts.append(
            "What became of its packets\n" + bars([(_name(f), f.share, f.packets) for f in found.fates])
        )
    if found.figures:
        lines = [
            f"  {f.place}, {f.cause}: {f.name} {number(f.mean)} ({number(f.least)} to {number(f.greatest)})"
            for f in found.figures
        ]
        parts.append("Values behind its losses: mean (min to max)\n" + "\n".join(lines))
    if found.cwnd:
        times, values = zip(*found.cwnd, strict=True)
        line = sparkline(values, _WIDTH)
        start, end = f"{number(times[0])} s", f"{number(times[-1])} s"
        parts.append(
            f"Congestion window of seed {found.seeds[0]}, 0 to {number(max(values), 3)} segments\n"
            f"  {line}\n  {start}{end:>{max(1, len(line) - len(start))}}"
        )
    parts.append(
        f"Rates and marks: {found.window[0]} to {found.window[1]}."
        " Losses, retransmissions and the window plot: the whole run.\n"
        "What the words mean: inprofile glossary"
    )
    if found.because:
        parts.append("\n".join([found.because, *(tried or [_removal(found)])]))
    return "\n\n".join(parts)


def _removal(found: Explanation) -> str:
    """How to run it without the cause."""
    from ..experiment.scenario import toml
    from ..studies.explain.cause import KINDS

    def keys(*causes: Cause) -> str:
        changes = [change for cause in causes for change in cause.changes.items()]
        return " ".join(f"--set {shlex.quote(f'{key}={toml(value)}')}" for key, value in changes)

    groups = [found.causes] if found.together else [(cause,) for cause in found.causes]
    ways = [(" and ".join(KINDS[c.kind] for c in group), keys(*group)) for group in groups]
    return "\n".join(f"To see it with {what}, add --try, or run it with {how}" for what, how in ways)


def _name(fate: Fate) -> str:
    return f"{fate.what} at {fate.place}" if fate.place else fate.what


def bars(rows: list[tuple[str, float, float]]) -> str:
    """A bar a row: name, share, and count. The longest fills the width; anything above nothing shows.

    >>> print(bars([("delivered", 0.9, 90.0), ("early at core", 0.09, 9.0)]).replace("█", "#"))
      delivered      ######################################## 90.0 %      90
      early at core  ####                                      9.0 %       9
    """
    width = 40
    longest = max(share for _, share, _ in rows) or 1.0
    names = max(len(name) for name, _, _ in rows)
    eighths = " ▏▎▍▌▋▊▉"
    lines = []
    for name, share, packets in rows:
        units = max(round(share / longest * width * 8), 1 if share > 0 else 0)
        bar = "█" * (units // 8) + (eighths[units % 8] if units % 8 else "")
        lines.append(f"  {name:<{names}}  {bar:<{width}} {100 * share:4.1f} % {number(packets, 6):>7}")
    return "\n".join(lines)


def sparkline(values: tuple[float, ...], width: int) -> str:
    """Heights from 0 to the greatest, the mean of each stretch.

    >>> sparkline((0.0, 1.0, 2.0, 4.0), 4)
    '▁▃▅█'
    """
    blocks = "▁▂▃▄▅▆▇█"
    n = min(width, len(values))
    top = max(values) or 1.0
    stretches = [values[i * len(values) // n : (i + 1) * len(values) // n] for i in range(n)]
    return "".join(blocks[min(7, int(sum(s) / len(s) / top * 7 + 0.5))] for s in stretches)
