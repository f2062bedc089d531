"""The shell's completions after `--set` and `--axis`: keys of the experiment, and of a key its words."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

__all__ = ["complete_key"]

_MOST = 1 << 20
"""Bytes of a file that are read for its names; a larger one is no experiment that somebody writes."""


def complete_key(ctx: typer.Context, incomplete: str) -> Iterator[tuple[str, str]]:
    """`KEY=` with what it means; behind the sign the words it may be."""
    from ..experiment.keys import keys

    name, equals, begun = incomplete.partition("=")
    # An option that still has no value leaves what precedes it unread.
    for key in keys(_tree([ctx.params.get("file"), *ctx.args])):
        if not equals and key.name.startswith(name):
            yield f"{key.name}=", key.doc
        elif equals and key.name == name:
            yield from ((f"{name}={word}", "") for word in key.values if word.startswith(begun))


def _tree(words: list[object]) -> dict[str, Any]:
    """The tables of the first of these that is a file; none where none is, as running it will say."""
    for word in words:
        try:
            with Path(str(word)).open("rb") as opened:
                return tomllib.loads(opened.read(_MOST).decode())
        except (OSError, ValueError):
            continue
    return {}
