"""Mechanisms of one's own: a class with a few documented methods, used like any marker or queue discipline.

    >>> import inprofile
    >>> class EveryTenth(inprofile.Marker):
    ...     "Every n-th packet OUT."
    ...     n: int = inprofile.parameter(10, least=1, doc="Of so many packets one is OUT.")
    ...     def setup(self):
    ...         self.seen = 0
    ...     def mark(self, now, packet, rng):
    ...         self.seen += 1
    ...         return "out" if self.seen % self.n == 0 else "in"
    >>> inprofile.register(EveryTenth)
    'every_tenth'

From then on an experiment may say `marker = { kind = "every_tenth", n = 20 }`. The command line takes a file
of such classes: `--mechanism FILE`. They run in simulations; what is to run on real links is written in Rust.
"""

from . import engine  # noqa: F401 (first, as it settles what _internal is)

# isort: split
from .._internal import MechanismError
from .classes import Aqm, Bytes, Duration, Marker, Rate, parameter
from .registry import Cost, Source, cost, load_classes, register, registered, write_sources

__all__ = [
    "Aqm",
    "Bytes",
    "Cost",
    "Duration",
    "Marker",
    "MechanismError",
    "NotDeterministic",
    "Rate",
    "Source",
    "cost",
    "load_classes",
    "parameter",
    "register",
    "registered",
    "write_sources",
]


class NotDeterministic(MechanismError):
    """The same seed gave two results: the mechanism keeps something beyond its instance, or reads a clock."""
