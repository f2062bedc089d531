"""Compared with what? All schemes on the same experiments, each tuned with the same budget.

`schemes.toml` says what is compared; the scenario files beside it on what. A scheme is put on an experiment
(`schemes`), run with every setting of one length, reduced to a few measures (`measure`), and compared as a
frontier and at equal mean queueing delay (`frontier`); `winners` says who is best where, and who cannot be
told from the best. `run` does all that, `page` shows what it leaves, a
`comparison`.
"""

from __future__ import annotations

from .comparison import Comparison, ComparisonPlan, Study
from .own import TuneError
from .run import compare, plan
from .schemes import NoContractError, SchemeFileError, UnknownSchemeError

__all__ = [
    "Comparison",
    "ComparisonPlan",
    "NoContractError",
    "SchemeFileError",
    "Study",
    "TuneError",
    "UnknownSchemeError",
    "compare",
    "plan",
]
