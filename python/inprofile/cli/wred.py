"""`inprofile wred`: what a switch's WRED profiles do to TCP."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from .._input import visible
from ..metrics.quantity import bits_per_second, number, pm, quantity
from ..metrics.summary import text_table
from ..run.storage import check_folder, write_whole
from ..studies.wred import Port, Switch, Unreadable, check, pauses, read
from ..studies.wred.effect import Outcome, Traffic, buffer_of, cases, outcomes, scenario
from ..studies.wred.profile import alike
from .common import Jobs, Json, Refused, argument, emit, guarded, option, say
from .execution import announce, progress

_RTT, _FLOWS, _SEEDS = 1000.0, 8, 5


@guarded
def wred(
    file: Annotated[
        Path,
        argument(
            "SONiC's config_db.json, or OpenConfig QoS as JSON; with --to also an experiment file.", "FILE"
        ),
    ],
    profile: Annotated[list[str] | None, option("Only this profile; may be repeated.")] = None,
    rate: Annotated[str | None, option('The ports\' speed, if the file has none: "100 Gbit/s".')] = None,
    rtt: Annotated[float, typer.Option(help="Round-trip time without queues, in microseconds.")] = _RTT,
    flows: Annotated[int, typer.Option(help="TCP connections that share the queue.")] = _FLOWS,
    buffer: Annotated[
        int | None, option("Bytes that the queue may take, if the file does not say it.")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of each case.")] = _SEEDS,
    to: Annotated[
        str | None,
        option(
            "Print profiles, policers, schedulers and maps as a configuration; simulate nothing.",
            "sonic|openconfig",
        ),
    ] = None,
    queue: Annotated[
        str | None,
        option(
            "With --to and an experiment file: the queue that its measured link is, or the first of its"
            " classes; default: Ethernet0, the lowest.",
            "PORT|QUEUE",
        ),
    ] = None,
    dscp: Annotated[
        list[str] | None,
        option("With --to and an experiment file: the code points of a class. Repeatable.", "CLASS=10,12,…"),
    ] = None,
    check_only: Annotated[bool, typer.Option("--check", help="Only check; simulate nothing.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write a drawing and the experiments of each profile to this folder.")
    ] = None,
    jobs: Jobs = None,
    json_: Json = False,
) -> None:
    """Check WRED profiles of a switch (SONiC, OpenConfig), draw them, and simulate what they do to TCP."""
    if to is not None:
        simulated = {
            "--rate": rate is not None,
            "--buffer": buffer is not None,
            "--check": check_only,
            "--out": out is not None,
            "--rtt": rtt != _RTT,
            "--flows": flows != _FLOWS,
            "--seeds": seeds != _SEEDS,
            "--json": json_,
        }
        if given := [name for name, is_given in simulated.items() if is_given]:
            raise Refused(f"{' and '.join(given)} with --to: it writes what the file says, and nothing runs")
        _convert(file, profile, to, queue, dscp or [])
        return
    if queue is not None or dscp:
        raise Refused("--queue and --dscp are for --to: write --to sonic or --to openconfig")
    try:
        ports = _chosen(read(file), profile)
        chosen = {queue for port in ports for queue in port.queues}
        paused = [pause for pause in pauses(file) if chosen & set(pause.queues)]
        traffic = Traffic(rtt * 1e-6, flows, seeds, None if rate is None else _rate(rate), buffer)
        if out is not None:
            check_folder(out)
            out.mkdir(parents=True, exist_ok=True)
        found = [(port, [] if check_only else _run(port, traffic, jobs)) for port in ports]
    except (Unreadable, ValueError, KeyError) as error:
        if type(error) not in (Unreadable, ValueError, KeyError):
            raise
        raise Refused(visible(f"{file}: {error}")) from None
    if out is not None:
        _write(found, traffic, out)
    if json_:
        emit(
            {
                "profiles": [_as_json(port, traffic, ran) for port, ran in found],
                "pauses": [pause.to_json() for pause in paused],
            }
        )
    else:
        texts = [_as_text(port, traffic, ran) for port, ran in found]
        say("\n\n\n".join([*texts, *(visible(pause.text()) for pause in paused)]))
    if any(check(port) for port, _ in found) or any(pause.findings for pause in paused):
        raise typer.Exit(1)


def _convert(file: Path, profile: list[str] | None, to: str, queue: str | None, dscp: list[str]) -> None:
    """Print the configuration. Raises Refused where the format cannot say it."""
    from ..experiment.scenario import load
    from ..studies.wred import read_switch
    from ..studies.wred.experiment import switch_of
    from ..studies.wred.profile import queue_of
    from ..studies.wred.written import FORMATS, Unsayable, needs

    if to not in FORMATS:
        raise Refused(f'--to "{to}": write {" or ".join(FORMATS)}')
    if file.suffix == ".toml":
        if profile:
            raise Refused(
                "--profile is of a switch's file: an experiment has its measured link's queue alone"
            )
        if queue is not None and not all(queue_of(queue)):
            raise Refused(f'--queue "{queue}": write a port and a queue: Ethernet0|3')
    elif queue is not None or dscp:
        raise Refused("--queue and --dscp are of an experiment: a switch's file says them itself")
    try:
        if file.suffix == ".toml":
            switch = switch_of(load(file), queue, _code_points(dscp), remark=to == "openconfig")
        else:
            switch = read_switch(file)
            if profile:
                switch = Switch(tuple(_chosen(list(switch.ports), profile)))
        tree = FORMATS[to](switch)
    except (Unreadable, Unsayable, ValueError) as error:
        if type(error) not in (Unreadable, Unsayable, ValueError):
            raise
        lines = "\n".join(f"{file}: {line}" for line in str(error).splitlines())
        raise Refused(visible(f"{to} cannot say this, and nothing is written:\n{lines}")) from None
    # A switch's file, not an answer: nothing of ours is in it.
    say(json.dumps(tree, indent=2))
    notes = [*switch.lost, *needs(to, switch, tree), *([_UNBOUND[to]] if switch.policers else [])]
    for note in dict.fromkeys(notes):
        print(visible(f"{file}: {note}"), file=sys.stderr)


_UNBOUND = {
    "sonic": "its policers are bound to no port: a rule of an ACL for each customer has to name its own",
    "openconfig": "its policers are bound to no interface: each customer's has to name its scheduler-policy",
}


def _code_points(given: list[str]) -> dict[str, tuple[int, ...]]:
    """Read `ef=46`. Raises Refused."""
    found = {}
    for text in given:
        name, _, listed = text.rpartition("=")
        points = listed.split(",")
        if not name or not all(re.fullmatch(r"\d{1,2}", p) and int(p) < 64 for p in points):
            raise Refused(
                f"--dscp {text!r}: write a class and its code points, 0 to 63: ef=46 or gold=10,12,14"
            )
        found[name] = tuple(map(int, points))
    return found


def _rate(text: str) -> float:
    """In bit/s. Raises Refused for what is no rate."""
    try:
        return bits_per_second(text)
    except (KeyError, ValueError):
        raise Refused(
            f'--rate {text!r} is no rate: write a number and its unit, such as "100 Gbit/s"'
        ) from None


def _chosen(ports: list[Port], names: list[str] | None) -> list[Port]:
    there = list(dict.fromkeys(port.profile.name for port in ports))
    for name in names or []:
        if name not in there:
            raise ValueError(f'no profile is called "{name}"; there are: {", ".join(there)}')
    return [port for port in ports if not names or port.profile.name in names]


def _run(port: Port, traffic: Traffic, jobs: int | None) -> list[Outcome]:
    """Nothing for a profile that does nothing."""
    if not port.profile.drop and not port.profile.mark:
        return []
    work = [(scenario(port, traffic, case), traffic.seeds) for case in cases(port.profile)]
    announce(work, jobs)
    with progress(port.profile.name) as tell:
        return outcomes(port, traffic, jobs, tell)


def _as_json(port: Port, traffic: Traffic, ran: Iterable[Outcome]) -> dict[str, Any]:
    profile = port.profile
    return {
        "name": profile.name,
        "queues": list(port.queues),
        "rate": traffic.rate or port.rate,
        "buffer": buffer_of(port, traffic),
        **{
            kind: {c: {"min_th": k.min_th, "max_th": k.max_th, "max_p": k.max_p} for c, k in curves.items()}
            for kind, curves in (("drop", profile.drop), ("mark", profile.mark))
        },
        "weight": profile.weight,
        "findings": [finding.to_json() for finding in check(port)],
        "notes": [*profile.notes, *port.notes],
        "outcomes": [outcome.to_json() for outcome in ran],
    }


def _as_text(port: Port, traffic: Traffic, ran: list[Outcome]) -> str:
    profile = port.profile
    rate, buffer = traffic.rate or port.rate, buffer_of(port, traffic)
    where = f"{len(port.queues)} queue{'s' * (len(port.queues) != 1)}" if port.queues else "no queue"
    some = f" ({', '.join(port.queues[:3])}{', …' * (len(port.queues) > 3)})" if port.queues else ""
    head = f"{profile.name}: {where}{some}, {quantity(rate, 'bit/s') if rate else 'speed not known'}"
    parts = [visible(head), _thresholds(port, rate)] if profile.drop or profile.mark else [visible(head)]
    odd = [f"! {finding.says}" for finding in check(port)]
    parts += [visible("\n".join(odd))] if odd else ["Nothing odd was found."]
    known = traffic.buffer or port.buffer
    notes = [*profile.notes, *port.notes]
    if ran and not known:
        notes.append(f"no buffer is known: {quantity(buffer, 'B')} is assumed; give one with --buffer")
    parts += [visible("\n".join(f"- {note}" for note in notes))] if notes else []
    if ran:
        parts.append(
            f"{traffic.flows} connections, RTT {quantity(traffic.rtt, 's')}, buffer {quantity(buffer, 'B')},"
            f" {traffic.seeds} runs; queueing delay:"
        )
        parts.append(_results(ran))
    return "\n\n".join(parts)


def _thresholds(port: Port, rate: float | None) -> str:
    heading = ["colour", "", "from", "all from", "probability", *(["from", "all from"] if rate else [])]
    rows = []
    for kind, curves in (("dropped", port.profile.drop), ("marked", port.profile.mark)):
        for name, curve in alike(curves):
            ends = (curve.min_th, curve.max_th)
            row = [name, kind, *(quantity(x, "B") for x in ends), f"{100 * curve.max_p:.0f} %"]
            rows.append([*row, *([quantity(8 * x / rate, "s") for x in ends] if rate else [])])
    return text_table(heading, rows)


def _results(ran: list[Outcome]) -> str:
    heading = [
        "colour",
        "senders",
        "link used",
        "median",
        "p99",
        "dropped",
        "marked",
        "fairness",
        "RTOs a run",
    ]
    rows = []
    for outcome in ran:
        f = outcome.figures
        rows.append(
            [
                outcome.case.colour,
                outcome.case.title,
                f"{100 * f['utilisation'].mean:.1f} %",
                *(quantity(f[d].mean, "s", digits=3) if d in f else "–" for d in ("delay_p50", "delay_p99")),
                f"{100 * f['loss'].mean:.2f} %",
                f"{100 * f['marked'].mean:.2f} %",
                pm(f["fi"]),
                number(f["timeouts"].mean, 3),
            ]
        )
    return text_table(heading, rows)


def _write(found: list[tuple[Port, list[Outcome]]], traffic: Traffic, out: Path) -> None:
    """`NAME.svg`, and `NAME-COLOUR-SENDERS.toml` for each case; numbered where used in two ways."""
    import vl_convert

    from ..studies.wred.profile import curves

    stems: dict[str, int] = {}
    for port, ran in found:
        if not port.profile.drop and not port.profile.mark:
            continue
        stem = "".join(c if c.isalnum() or c in "-_" else "_" for c in port.profile.name)
        # Counted by the file's name: "a b" and "a_b" have the same.
        stems[stem] = nth = stems.get(stem, 0) + 1
        stem += f"-{nth}" * (nth > 1)
        drawn = curves(port, buffer_of(port, traffic), traffic.rate or port.rate)
        write_whole(out / f"{stem}.svg", vl_convert.vegalite_to_svg(drawn.to_json()).encode())
        for case in cases(port.profile) if ran else ():
            kind = case.title.lower().replace(",", "").replace(" ", "-")
            text = scenario(port, traffic, case)._text
            write_whole(out / f"{stem}-{case.colour}-{kind}.toml", text.encode())
