"""Assured bandwidth on the Internet: packet markers and queue disciplines, simulated and explained.

    >>> import inprofile
    >>> result = inprofile.parse(inprofile.STARTER).with_(duration="30 s", seeds=2).run()
    >>> sorted(result.summary())[:3]
    ['delay_mean', 'drops', 'edge_drops']

`load` reads an experiment file, `Scenario.with_` varies it, `Scenario.run` gives a `Result`,
`read` takes back what `Result.write` wrote. `sweep` runs an experiment over the values of some of its keys,
and `read_sweep` takes back what it wrote.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import own  # noqa: F401 (first, as it settles what _internal is)
from .own.engine import __version__

if TYPE_CHECKING:
    from ._input import SeedsError, UnfitFile
    from .experiment.dump import STARTER
    from .experiment.mechanisms import Mechanism, Parameter, mechanisms, schema
    from .experiment.scenario import Check, Problem, Scenario, ScenarioError, load, parse
    from .own import Aqm, Marker, MechanismError, NotDeterministic, parameter, register
    from .run.results import FolderInUse, Result, ResultError, read
    from .studies.sweep import Range, Sweep, SweepError, read_sweep, sweep

__all__ = [
    "STARTER",
    "Aqm",
    "Check",
    "FolderInUse",
    "Marker",
    "Mechanism",
    "MechanismError",
    "NotDeterministic",
    "Parameter",
    "Problem",
    "Range",
    "Result",
    "ResultError",
    "Scenario",
    "ScenarioError",
    "SeedsError",
    "Sweep",
    "SweepError",
    "UnfitFile",
    "__version__",
    "load",
    "mechanisms",
    "parameter",
    "parse",
    "read",
    "read_sweep",
    "register",
    "schema",
    "sweep",
]

# Where each name is: imported once it is asked for, so that the command line starts at once.
_PLACES = {
    "_input": ("SeedsError", "UnfitFile"),
    "experiment.mechanisms": ("Mechanism", "Parameter", "mechanisms", "schema"),
    "experiment.scenario": ("Check", "Problem", "Scenario", "ScenarioError", "load", "parse"),
    "experiment.dump": ("STARTER",),
    "own": ("Aqm", "Marker", "MechanismError", "NotDeterministic", "parameter", "register"),
    "run.results": ("FolderInUse", "Result", "ResultError", "read"),
    "studies.sweep": ("Range", "Sweep", "SweepError", "read_sweep", "sweep"),
}
_PLACE = {name: place for place, names in _PLACES.items() for name in names}
_ROOMS = ("charts", "experiment", "metrics", "run", "studies")


def __getattr__(name: str) -> Any:
    """See PEP 562."""
    if name in _ROOMS:
        return import_module(f".{name}", __name__)
    if name not in _PLACE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f".{_PLACE[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
