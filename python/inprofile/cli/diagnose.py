"""`inprofile diagnose`: whether a policer or a shaper is on the way of a transfer."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .._input import visible
from ..run.storage import write_whole
from .common import Json, Refused, Set, argument, emit, guarded, open_scenario, option, overrides_of, say

if TYPE_CHECKING:
    from ..experiment.scenario import Scenario
    from ..studies.diagnose import Diagnosis


@guarded
def diagnose(
    file: Annotated[
        Path | None,
        argument(
            "A capture of TCP (pcap, pcapng) at sender or receiver; iperf3's JSON, which tells less; an"
            " experiment file, or a folder that run --out wrote, of which seed 1 is run and captured.",
            "FILE",
        ),
    ] = None,
    live: Annotated[
        str | None,
        option(
            "Instead of a file: send there for a while, and diagnose that transfer (as root).",
            "HOST:PORT",
            "--live",
        ),
    ] = None,
    sink: Annotated[
        int | None,
        option(
            "The other end of --live: take what comes to this port, until interrupted.",
            "PORT",
            "--sink",
            min=1,
            max=65535,
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option("--time", metavar="SECONDS", help="How long --live sends.", min=1, max=600)
    ] = 20,
    congestion: Annotated[
        str | None,
        option(
            "The kernel's congestion control that --live sends with; default: the kernel's own.",
            "NAME",
            "--congestion",
        ),
    ] = None,
    connections: Annotated[
        int,
        typer.Option(
            "--connections",
            metavar="N",
            help="How many connections --live sends with at once: the rate of a policer with a small burst is"
            " seen only if they keep its bucket empty.",
            min=1,
            max=64,
        ),
    ] = 1,
    keep: Annotated[Path | None, option("Also keep what --live captured.", "FILE.pcap", "--keep")] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Of a capture that is cut off, diagnose what is before the cut.")
    ] = False,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="LINK", help="Of an experiment: the link that is captured; default: the measured one."
        ),
    ] = None,
    figure: Annotated[
        Path | None,
        option("Draw data sent and lost over time, and the token bucket.", "FILE.svg", "--figure"),
    ] = None,
    set_: Set = None,
    json_: Json = False,
) -> None:
    """Tell from a capture, or by a transfer, whether a policer or a shaper is on the way, and what mends it.

    Of what is found it prints the rate, the burst and how sure they are.
    """
    from ..studies.diagnose import Unreadable

    if figure is not None and (figure.suffix != ".svg" or not figure.parent.is_dir()):
        raise Refused(f"--figure {figure}: name a file that ends in .svg, in a folder that exists")
    if [file, live, sink].count(None) != 2:
        raise Refused("name one: a FILE, --live HOST:PORT, or --sink PORT")
    if live is None and (keep is not None or congestion is not None or connections > 1):
        raise Refused("--keep, --congestion and --connections are for --live HOST:PORT: leave them out")
    try:
        if sink is not None:
            _drain(sink)
        elif live is not None:
            if partial or at is not None or overrides_of(set_):
                raise Refused("--partial, --at and --set are for files: leave them out with --live")
            _tell(
                _transferred(live, seconds, congestion, keep, connections),
                f"transfer to {live}",
                figure,
                json_,
            )
        elif file is not None:
            _of_file(file, partial, at, set_, figure, json_)
    except Unreadable as error:
        raise Refused(visible(str(error))) from None


def _of_file(
    file: Path, partial: bool, at: str | None, overrides: list[str] | None, figure: Path | None, json_: bool
) -> None:
    from ..studies.diagnose.iperf import is_iperf

    if file.is_file() and file.suffix != ".toml" and is_iperf(file):
        _intervals(file, figure, json_)
    else:
        _tell(_found(file, partial, at, overrides), str(file), figure, json_)


def _tell(found: Diagnosis, name: str, figure: Path | None, json_: bool) -> None:
    from ..studies.diagnose import as_json
    from ..studies.diagnose.words import as_text, mend

    if figure is not None:
        _draw(found, Path(name).name, figure)
    if json_:
        emit({"file": name, **as_json(found), "mend": mend(found)})
    else:
        say(as_text(found, name))


def _drain(port: int) -> None:
    from ..studies.diagnose.transfer import drain, listening

    with listening(port) as listener:
        sys.stderr.write(f"Taking what comes to port {port}; end with Ctrl+C.\n")
        # That is how it ends.
        with contextlib.suppress(KeyboardInterrupt):
            drain(listener)


def _transferred(
    to: str, seconds: float, congestion: str | None, keep: Path | None, connections: int
) -> Diagnosis:
    """Of a transfer made now."""
    from ..studies.diagnose import of_capture
    from ..studies.diagnose.transfer import captured, endpoint

    if keep is not None and (keep.suffix != ".pcap" or not keep.parent.is_dir()):
        raise Refused(f"--keep {keep}: name a file that ends in .pcap, in a folder that exists")
    try:
        end = endpoint(to)
    except ValueError as error:
        raise Refused(str(error)) from None
    with tempfile.TemporaryDirectory() as folder:
        place = keep or Path(folder) / "live.pcap"
        captured(end, seconds, congestion, place, connections)
        return of_capture(place)


def _intervals(file: Path, figure: Path | None, json_: bool) -> None:
    from ..studies.diagnose.iperf import of_iperf

    if figure is not None:
        raise Refused(
            f"--figure draws packets, and {file} has intervals: capture them with tcpdump and give that"
        )
    found = of_iperf(file)
    if json_:
        emit({"file": str(file), **found.to_json()})
    else:
        say(found.text(str(file)))


def _found(file: Path, partial: bool, at: str | None, overrides: list[str] | None) -> Diagnosis:
    from ..studies.diagnose import of_capture

    if file.is_dir() or file.suffix == ".toml":
        return _simulated(_scenario(file, overrides), at)
    if at is not None or overrides_of(overrides):
        raise Refused(f"--at and --set are for experiments, and {file} is a capture: leave them out")
    return of_capture(file, partial=partial)


def _scenario(file: Path, overrides: list[str] | None) -> Scenario:
    from ..experiment.scenario import Scenario
    from ..run.results import read

    if not file.is_dir():
        return open_scenario(file, overrides)
    result = read(file)
    if result.provenance.live is not None:
        raise Refused(
            f"{file} is of real hosts, whose packets are not kept: capture them with tcpdump and give that"
        )
    return Scenario.again(result.provenance).with_(dict(overrides_of(overrides)))


def _simulated(scenario: Scenario, at: str | None) -> Diagnosis:
    """Of what a capture at a link of the simulation shows; no more than tcpdump would."""
    from ..run.packets import NotCaptured, write_capture
    from ..studies.diagnose import of_capture

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "simulated.pcapng"
        try:
            write_capture(scenario, place, [at] if at else [], snaplen=128)
        except NotCaptured as error:
            raise Refused(visible(str(error))) from None
        return of_capture(place)


def _draw(found: Diagnosis, name: str, place: Path) -> None:
    import vl_convert

    from ..studies.diagnose.words import picture

    write_whole(place, vl_convert.vegalite_to_svg(picture(found, visible(name)).to_json()).encode())
