"""`inprofile view`: results in a browser."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .common import Json, Open, Own, Refused, argument, emit, guarded, option, say
from .execution import TRACED, announce, progress

if TYPE_CHECKING:
    from ..view import Folder


@guarded
def view(
    folder: Annotated[
        Path | None,
        argument(
            "A folder that run --out or sweep --out has written, or one with such folders in it.", "DIR"
        ),
    ] = None,
    router: Annotated[
        str | None,
        option(
            "Watch a running inprofiled on this machine: its control socket, usually"
            " /run/inprofiled/control.sock, or its metrics, http://127.0.0.1:PORT/metrics.",
            "SOCKET|URL",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port on 127.0.0.1; 0 for any free one.")
    ] = 8470,
    open_: Open = False,
    export: Annotated[
        Path | None,
        option(
            "Write everything into one HTML file that needs no server (and has no what-if), then exit.",
            "FILE",
        ),
    ] = None,
    film: Annotated[
        Path | None,
        option(
            "Write the queue of a run's measured link, packet by packet around the first drop, as an"
            " animated GIF, then exit.",
            "FILE.gif",
        ),
    ] = None,
    mechanism: Own = None,
    json_: Json = False,
) -> None:
    """Show runs and sweeps in a browser: series, packets, what-if; or a running inprofiled."""
    from ..view import Folder, Watch, listen, serve
    from ..view import export as write
    from ..view import router as asked
    from ..view.server import new_token, page_files

    if folder is None and router is None:
        raise Refused(
            "nothing to show: give DIR, a folder of results, or --router SOCKET, a running inprofiled"
        )
    page = page_files()
    found = None if folder is None else Folder(folder)
    if film is not None:
        if found is None or router is not None or export is not None:
            raise Refused("--film draws a run: give DIR, the folder of one, and no --router or --export")
        _film(found, film)
        if json_:
            emit({"file": str(film)})
        else:
            say(f"Written to {film}.")
        return
    if export is not None:
        if found is None or router is not None:
            raise Refused("--export writes a folder of results into a file: give DIR, and no --router")
        left_out = write(found, export, page)
        if json_:
            emit({"file": str(export), "left_out": left_out})
            return
        say(f"Written to {export}: open it in any browser. It has no what-if: nothing runs there.")
        for what in left_out:
            say(f"Left out: {what}")
        return

    def ready(address: str) -> None:
        if json_:
            emit({"address": address})
            sys.stdout.flush()
        else:
            what = " and ".join(str(x) for x in (folder, router) if x is not None)
            say(f"{what} {'are' if folder and router else 'is'} shown at\n  {address}\nCtrl-C ends it.")
        if open_:
            webbrowser.open(address)

    watch = None if router is None else Watch(asked(router))
    serve(found, listen(port), new_token(), page, ready, watch)


def _film(found: Folder, file: Path) -> None:
    """Raises Refused for what cannot be drawn."""
    from ..run.storage import write_whole
    from ..view.film import FRAMES, film
    from ..view.whatif import TooMuch, WhatIf

    if file.suffix.lower() != ".gif":
        raise Refused(f"--film {file}: a GIF is written: call it {file.stem}.gif. The page saves WebM too")
    runs = [entry for entry in found.entries() if entry.kind == "run"]
    if len(runs) != 1:
        raise Refused(
            f"--film draws one run, and {found.place} holds {len(runs)}: give the folder of the one"
            " that run --out has written"
        )
    (entry,) = runs
    provenance = found.result(entry.id, ()).provenance
    if provenance.live is not None:
        raise Refused("--film makes the run again, and these hosts were real: give a simulated result")
    seed = provenance.seeds[0]
    announce([(found.scenario(entry.id), TRACED)], 1)
    print(
        f"The run with seed {seed} is made again; drawing {FRAMES} frames takes about 5 s.", file=sys.stderr
    )
    with progress("frames", "frames") as tell:
        try:
            passage = WhatIf().passage(found, entry.id, None, seed, None, (None, None))
        except TooMuch as error:
            raise Refused(str(error)) from None
        write_whole(file, film(passage, lambda done: tell(done, FRAMES)))
