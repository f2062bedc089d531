"""TCP senders by name (`senders.toml`): today's, under which papers and comparisons are run, and others."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["Sender", "UnknownSenderError", "all_senders", "sender", "senders"]


class UnknownSenderError(LookupError):
    """No sender of that name."""

    def __init__(self, name: str) -> None:
        known = [s.id for s in all_senders()]
        near = difflib.get_close_matches(name.lower(), [*known, *_congestions()], n=1, cutoff=0.5)
        hint = f'did you mean "{near[0]}"? ' if near else ""
        super().__init__(f'there is no sender "{name}": {hint}Choose from {", ".join(known)}')


@dataclass(frozen=True)
class Sender:
    """How a host sends today."""

    id: str
    title: str
    text: str
    #: What `[tcp]` has; anything else is the profile's default.
    tcp: Mapping[str, str | bool]
    #: CPU time of a packet beside that of ns-2's Reno: for estimates only.
    cost: float
    #: It sends at a rate of its own: jitter has no place.
    paced: bool = False

    @property
    def changes(self) -> dict[str, object]:
        """The keys of an experiment that it replaces; the rest of `[tcp]` stays.

        >>> senders()[0].changes
        {'tcp.profile': 'linux', 'tcp.congestion': 'cubic'}
        """
        found: dict[str, object] = {f"tcp.{key}": value for key, value in self.tcp.items()}
        return found | {"tcp.jitter": "0 s"} if self.paced else found


@cache
def _read() -> dict[str, tuple[Sender, ...]]:
    with (Path(__file__).parent / "senders.toml").open("rb") as file:
        found: dict[str, Any] = tomllib.load(file)
    return {kind: tuple(Sender(**entry) for entry in entries) for kind, entries in found.items()}


def senders() -> tuple[Sender, ...]:
    """Today's, in the order in which tables have them.

    >>> [sender.id for sender in senders()]
    ['linux', 'prague', 'bbr']
    """
    return _read()["senders"]


def sender(name: str) -> Sender:
    """One by its name, or by that of its congestion control. Raises UnknownSenderError.

    >>> sender("bbr").title, sender("cubic").id
    ('BBR version 3', 'linux')
    """
    for one in all_senders():
        if name in (one.id, one.tcp["congestion"]):
            return one
    raise UnknownSenderError(name)


def all_senders() -> tuple[Sender, ...]:
    """Today's, then the others that there is a name for."""
    return (*senders(), *_read()["others"])


def _congestions() -> list[str]:
    return [str(one.tcp["congestion"]) for one in all_senders()]
