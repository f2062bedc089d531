"""`inprofile glossary`: what the printed words mean."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from ..metrics.glossary import Entry, entries, lookup
from .common import Json, Refused, emit, guarded, show

if TYPE_CHECKING:
    from rich.console import Group, RenderableType


@guarded
def glossary(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD]…", help="Only these. Default: all.", show_default=False),
    ] = None,
    json_: Json = False,
) -> None:
    """Define every metric, column and word that is printed: unit, where it is measured, what counts."""
    chosen = list(entries())
    if words:
        chosen = [entry for word in words for entry in _defined(word)]
    if json_:
        emit({"glossary": [asdict(entry) for entry in chosen]})
    else:
        show(_layout(chosen))


def _defined(word: str) -> list[Entry]:
    found = lookup(word)
    if not found:
        from difflib import get_close_matches

        near = get_close_matches(word, [known for entry in entries() for known in entry.words], 3, 0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise Refused(f'the glossary has no "{word}"{hint} `inprofile glossary` lists every word.')
    return found


def _layout(chosen: list[Entry]) -> Group:
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = []
    section = ""
    for entry in chosen:
        if entry.section != section:
            section = entry.section
            parts.append(Text(f"\n{section}" if parts else section, style="bold underline"))
        details = f"  ({entry.details})" if entry.details else ""
        parts.append(Text.assemble((", ".join(entry.words), "cyan"), (details, "dim")))
        parts.append(Padding(Text(entry.meaning.replace("`", "").replace("**", "")), (0, 0, 0, 4)))
    return Group(*parts)
