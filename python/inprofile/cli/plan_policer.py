"""`inprofile plan policer`: how large a policer's burst has to be."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .._input import visible
from ..metrics.quantity import number, pm, quantity
from ..metrics.summary import text_table
from ..run.storage import check_folder, write_whole
from ..studies.plan.policer import Answer, PolicerQuestion, answer, batch, commands, expected, scenario
from .common import Jobs, Json, Refused, emit, guarded, option, say
from .execution import announce

if TYPE_CHECKING:
    from ..studies.plan.policer import Point

ANSWER = ("policer.toml", "commands.txt", "police.tc")
"""Files that say which burst is enough."""


@guarded
def policer(
    rate: Annotated[str, option('The rate that is policed: "10 Mbit/s".')],
    rtt: Annotated[
        list[str],
        option(
            'Round-trip time: "20..80 ms", or "20 ms", of which runs have a tenth more or less;'
            " repeat for one a flow."
        ),
    ],
    flows: Annotated[int, typer.Option(min=1, help="TCP connections that share the policer.")] = 1,
    tcp: Annotated[str, typer.Option(help="Their congestion control.")] = "cubic",
    link: Annotated[
        str | None, typer.Option(help="Rate at which packets reach the policer; default: ten times --rate.")
    ] = None,
    goal: Annotated[float, typer.Option(help="Share of the rate that TCP is to get.")] = 0.95,
    seeds: Annotated[int, typer.Option(min=2, help="Runs a burst, at most.")] = 20,
    out: Annotated[
        Path | None, typer.Option(help="Write experiment, curve and commands to this folder.")
    ] = None,
    jobs: Jobs = None,
    json_: Json = False,
) -> None:
    """How large a policer's burst has to be: the smallest with which TCP gets the rate, and the curve."""
    try:
        question = PolicerQuestion(rate, rtt, flows, tcp, link, goal, seeds)
        scenario(question, 15_000)
    except ValueError as error:
        if type(error) is not ValueError:
            raise
        raise Refused(visible(str(error))) from None
    if out is not None:
        # Before anything runs: an answer that cannot be written would be lost.
        check_folder(out)
        out.mkdir(parents=True, exist_ok=True)
    announce([expected(question)], jobs)
    found = answer(question, jobs=jobs, progress=lambda text: print(text, file=sys.stderr))
    if out is not None:
        _write(found, out)
    if json_:
        emit(as_json(found))
    else:
        say(as_text(found, out))


def as_json(found: Answer) -> dict[str, Any]:
    """The answer as one object."""
    return {
        "rate": found.question.rate,
        "rtt": list(found.question.rtt),
        "rtt_of_runs": [str(one) for one in found.question.round_trips],
        "flows": found.question.flows,
        "tcp": found.question.tcp,
        "goal": found.question.goal,
        "chosen": None if found.chosen is None else found.chosen.to_json(),
        "curve": [point.to_json() for point in found.curve],
        "other_rtt": [
            {
                "factor": factor,
                "rtt_of_runs": [str(one) for one in found.question.at(factor).round_trips],
                "reaches_the_goal": found.question.reached(point),
                **point.to_json(),
            }
            for factor, point in found.others.items()
        ],
        "rules_of_thumb": {name: point.to_json() for name, point in found.rules.items()},
        "commands": {} if found.chosen is None else commands(found.question, found.chosen.burst),
    }


def as_text(found: Answer, out: Path | None = None) -> str:
    """The answer, what it costs, rules of thumb beside it, the curve and the commands."""
    question = found.question
    one = f"{question.flows} {question.tcp} connection{'s' * (question.flows != 1)}"
    head = f"{question.rate}, RTT {_times(question)}, {one}, goal {100 * question.goal:g} % of the rate"
    parts = [head]
    if found.chosen is None:
        best = found.best
        parts.append(
            f"No burst up to {quantity(found.curve[-1].burst, 'B')} is enough: at best TCP gets"
            f" {_share(best)} of the rate, with {quantity(best.burst, 'B')}."
            " Queue the excess instead of dropping it (a shaper), lower the goal, or let more connections"
            " share the rate."
        )
    else:
        burst = found.chosen.burst
        parts.append(
            f"Burst: {quantity(burst, 'B')}, {quantity(8 * burst / question.bits, 's')} at the rate."
            f" TCP gets {_share(found.chosen)} of it (fresh seeds, n = {found.chosen.share.n}),"
            f" and {100 * found.chosen.loss.mean:.2f} % of its packets are dropped."
            f" In the worst of these runs it gets {number(found.chosen.least, 3)}.\n"
            f"Excess: after a rest, at most {found.above(0.1):.2f} times the rate in 100 ms,"
            f" {found.above(1.0):.2f} in a second, {found.above(10.0):.3f} in ten."
        )
    parts.append(_other_times(found))
    parts.append(_table("rule of thumb", [(name, p) for name, p in found.rules.items()], found))
    parts.append(_table("burst", [(quantity(p.burst, "B"), p) for p in found.curve], found))
    if found.chosen is not None:
        lines = [f"{name}:\n  {line}" for name, line in commands(question, found.chosen.burst).items()]
        parts.append("\n".join(lines))
        parts.append(
            "Sizes count from the IP header on. A system that counts more (Ethernet's 14 B, say)"
            "\nneeds a burst and a rate that are larger by as much a packet. Where it receives several"
            "\npackets as one (GRO, LRO), a burst below 64 kB drops them: ethtool -K DEV gro off lro off."
        )
    if out is not None:
        parts.append(f"Written to {visible(str(out))}.")
    return "\n\n".join(parts)


def _times(question: PolicerQuestion) -> str:
    """The columns of the runs' table."""
    return ", ".join(map(str, question.round_trips))


def _other_times(found: Answer) -> str:
    """The outcome of the same burst at half and at twice the round-trip time, and the conclusion."""
    question = found.question
    heading = ["this burst at an RTT of", "", "TCP's share of the rate", "least of a run", "goal"]
    names = {0.5: "half", 1.0: "as asked", 2.0: "twice"}
    points = sorted({1.0: found.best, **found.others}.items())
    rows = [
        [
            _times(question.at(factor)),
            names[factor],
            _share(point),
            number(point.least, 3),
            "reached" if question.reached(point) else "missed",
        ]
        for factor, point in points
    ]
    return (
        f"{text_table(heading, rows)}\n"
        "Which burst is enough depends on the RTT: the answer holds for the times that were asked for.\n"
        'Where customers differ, give the range of them all, or the longest: --rtt "20..80 ms".'
    )


def _share(point: Point) -> str:
    return f"{pm(point.share)}"


def _table(first: str, rows: list[tuple[str, Point]], found: Answer) -> str:
    heading = [
        first,
        "bytes",
        "time at the rate",
        "TCP's share of the rate",
        "least of a run",
        "dropped",
        "RTOs a run",
    ]
    body = [
        [
            name,
            f"{p.burst:,}",
            quantity(8 * p.burst / found.question.bits, "s"),
            _share(p),
            number(p.least, 3),
            f"{100 * p.loss.mean:.2f} %",
            number(p.timeouts.mean, 3),
        ]
        for name, p in rows
    ]
    return text_table(heading, body)


def _write(found: Answer, out: Path) -> None:
    """`curve.csv` and, where there is an answer, the files of `ANSWER`; an earlier answer's go."""
    lines = ["burst_bytes,share,share_lo,share_hi,loss,timeouts,share_least"]
    for p in found.curve:
        lo, hi = p.share.ci95 or (p.share.mean, p.share.mean)
        lines.append(
            f"{p.burst},{p.share.mean!r},{lo!r},{hi!r},{p.loss.mean!r},{p.timeouts.mean!r},{p.least!r}"
        )
    write_whole(out / "curve.csv", "\n".join([*lines, ""]).encode())
    if found.chosen is None:
        for name in ANSWER:
            (out / name).unlink(missing_ok=True)
    if found.chosen is not None:
        burst = found.chosen.burst
        head = f"# Each run had round-trip times of its own, of {_times(found.question)}: flows.flow.rtt.\n"
        write_whole(out / "policer.toml", (head + scenario(found.question, burst)._text).encode())
        told = commands(found.question, burst)
        text = "".join(f"# {name}\n{line}\n" for name, line in told.items())
        write_whole(out / "commands.txt", text.encode())
        write_whole(out / "police.tc", batch(found.question, burst).encode())
