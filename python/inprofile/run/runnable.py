"""The interface of an experiment that can be run; `inprofile.Scenario` is one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .. import _internal
    from .results import Provenance

__all__ = ["Runnable", "Seeds"]

Seeds = int | Iterable[int]
"""How many seeds (`20` is 1…20), or which ones."""


class Runnable(Protocol):
    """An experiment that has been checked and can run."""

    _inner: _internal.Scenario
    _overrides: tuple[tuple[str, str], ...]

    @property
    def _text(self) -> str: ...

    @property
    def title(self) -> str:
        """Its title."""

    @property
    def file(self) -> str:
        """The file it came from, as messages call it."""

    @property
    def canonical(self) -> str:
        """All that decides its runs."""

    @property
    def own(self) -> list[str]:
        """The mechanisms among its own that are written in Python."""

    @property
    def seeds(self) -> Sequence[int]:
        """The seeds that it asks for."""

    def place_of(self, *keys: str) -> str:
        """Where the first of these keys that is written stands."""

    def expected_packets(self, seeds: Seeds | None = None) -> float:
        """About how many data packets its runs send."""

    def provenance(self, seeds: tuple[int, ...]) -> Provenance:
        """Where results of its runs with these seeds come from."""
