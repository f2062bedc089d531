"""Today's TCP senders (`senders.toml`), under which papers and comparisons are run again."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["Sender", "senders"]


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
        """What of an experiment it replaces, key by key; the rest of `[tcp]` stays.

        >>> senders()[0].changes
        {'tcp.profile': 'linux', 'tcp.congestion': 'cubic'}
        """
        found: dict[str, object] = {f"tcp.{key}": value for key, value in self.tcp.items()}
        return found | {"tcp.jitter": "0 s"} if self.paced else found


@cache
def senders() -> tuple[Sender, ...]:
    """All of them, in the order in which tables have them.

    >>> [sender.id for sender in senders()]
    ['linux', 'prague', 'bbr']
    """
    with (Path(__file__).parent / "senders.toml").open("rb") as file:
        return tuple(Sender(**entry) for entry in tomllib.load(file)["senders"])
