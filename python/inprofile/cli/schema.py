"""`inprofile schema`: what an experiment file may say, for editors."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ..experiment.mechanisms import schema as the_schema
from .common import Own, guarded, say
from .output import output_schema


@guarded
def schema(
    mechanism: Own = None,
    output: Annotated[
        bool, typer.Option("--output", help="Print the schema of what commands print with --json instead.")
    ] = False,
    json_: Annotated[
        bool, typer.Option("--json", help="Accepted for consistency; the schema is always JSON.")
    ] = False,
) -> None:
    """Print the JSON Schema of the experiment file, or of what --json prints."""
    say(json.dumps(output_schema() if output else the_schema(), ensure_ascii=False, indent=2))
