"""Settings that keep a promise, found by simulation.

`contracts` plans a link: which scheme of markers and queue discipline, with which settings, keeps the
contracts of the customers that share it, and what that costs the others. `policer` asks how large a policer's
burst has to be.

A plan is asked by an experiment file with a table `[plan]` (`question`). `store` makes the runs and keeps
them, `search` looks for settings, `contracts` puts the answer together, `variants` has the network changed,
and `files` writes what runs at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .contracts import Answer, plan
    from .question import Goal, PlanError, Question, read_question

__all__ = ["Answer", "Goal", "PlanError", "Question", "plan", "read_question"]


def __getattr__(name: str) -> Any:
    """Import what plans a link when it is asked for: the command line starts without numpy."""
    from importlib import import_module

    if name in ("Answer", "plan"):
        return getattr(import_module(".contracts", __name__), name)
    if name in __all__:
        return getattr(import_module(".question", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
