"""Suites: the tests that the field judges queue disciplines by, run whole.

`scenarios` are experiment files that come with Inprofile, `contestants` the disciplines and schemes,
`measure` what is kept of a run; `work` is what is to be run, `run` carries it out, `outcome` is how it came
out, `page` writes the report (`tables`, `coexistence`).
"""

from .contestants import Contestant, UnknownContestantError, contestants
from .outcome import Suite
from .run import CACHE, suite
from .scenarios import SUITES, UnknownScenarioError, UnknownTcpError, read, write_files
from .work import SuitePlan, plan

__all__ = [
    "CACHE",
    "SUITES",
    "Contestant",
    "Suite",
    "SuitePlan",
    "UnknownContestantError",
    "UnknownScenarioError",
    "UnknownTcpError",
    "contestants",
    "plan",
    "read",
    "suite",
    "write_files",
]
