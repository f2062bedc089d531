"""Suites: the tests that the field judges queue disciplines by, run whole.

`scenarios` are experiment files that come with Inprofile, `contestants` the disciplines and schemes,
`measure` what is kept of a run; `run` carries a suite out, `page` writes its report.
"""

from .contestants import Contestant, UnknownContestantError, contestants
from .run import CACHE, Plan, Suite, plan, suite
from .scenarios import SUITES, UnknownScenarioError, UnknownTcpError, read, write_files

__all__ = [
    "CACHE",
    "SUITES",
    "Contestant",
    "Plan",
    "Suite",
    "UnknownContestantError",
    "UnknownScenarioError",
    "UnknownTcpError",
    "contestants",
    "plan",
    "read",
    "suite",
    "write_files",
]
