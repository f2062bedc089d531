"""Assured bandwidth on the Internet: packet markers and queue disciplines, simulated and explained.

    >>> import inprofile
    >>> result = inprofile.parse(inprofile.STARTER).with_(duration="30 s", seeds=2).run()
    >>> sorted(result.summary())[:3]
    ['delay_mean', 'drops', 'edge_drops']

`load` reads an experiment file, `Scenario.with_` varies it, `Scenario.run` gives a `Result`,
`read` takes back what `Result.write` wrote. `sweep` runs an experiment over the values of some of its keys,
and `read_sweep` takes back what it wrote.
"""

from . import own  # noqa: F401 (first, as it settles what _internal is)
from ._input import SeedsError, UnfitFile
from .experiment.mechanisms import Mechanism, Parameter, mechanisms, schema
from .experiment.scenario import Check, Problem, Scenario, ScenarioError, load, parse
from .experiment.starter import STARTER
from .own import Aqm, Marker, MechanismError, NotDeterministic, parameter, register
from .own.engine import __version__
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
