"""The part of runs that contracts, groups and figures read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from .summary import Summary

__all__ = ["Runs"]


class Runs(Protocol):
    """Runs of one experiment: `Result` is one, and so is anything else with these tables."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds it was run with."""

    @property
    def flows(self) -> pa.Table:
        """A row a flow and seed."""

    @property
    def series(self) -> pa.Table:
        """The samples of monitors."""

    def summary(self) -> Summary:
        """Every metric over the seeds."""
