"""`inprofile view`: results in a browser."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from .common import Json, Open, Own, emit, guarded, say


@guarded
def view(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="A folder that run --out or sweep --out has written, or one with such folders in it.",
            show_default=False,
        ),
    ],
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port on 127.0.0.1; 0 for any free one.")
    ] = 8470,
    open_: Open = False,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write everything into one HTML file that needs no server (and has no what-if), then exit.",
            show_default=False,
        ),
    ] = None,
    mechanism: Own = None,
    json_: Json = False,
) -> None:
    """Show runs and sweeps in a browser: series, packets, what-if."""
    from ..view import Folder, listen, serve
    from ..view import export as write
    from ..view.server import new_token, page_files

    page = page_files()
    found = Folder(folder)
    if export is not None:
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
            say(f"{folder} is shown at\n  {address}\nCtrl-C ends it.")
        if open_:
            webbrowser.open(address)

    serve(found, listen(port), new_token(), page, ready)
