"""`inprofile schema`: what an experiment file may say, for editors."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ..experiment.mechanisms import schema as the_schema
from .common import Own, guarded, say


@guarded
def schema(
    mechanism: Own = None,
    json_: Annotated[
        bool, typer.Option("--json", help="Accepted for consistency; the schema is always JSON.")
    ] = False,
) -> None:
    """Print the JSON Schema of the experiment file."""
    say(json.dumps(the_schema(), ensure_ascii=False, indent=2))
