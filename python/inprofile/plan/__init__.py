"""Settings that keep a promise, found by simulation.

`contracts` plans a link: which scheme of markers and queue discipline, with which settings, keeps the
contracts of the customers that share it, and what that costs the others. `policer` asks how large a policer's
burst has to be.

A plan is asked by an experiment file with a table `[plan]` (`question`). `bench` makes the runs and keeps
them, `search` looks for settings, `contracts` puts the answer together, `variants` has the network changed,
and `files` writes what runs at once.
"""

from __future__ import annotations

from .contracts import Answer, plan
from .question import Goal, PlanError, Question, read_question

__all__ = ["Answer", "Goal", "PlanError", "Question", "plan", "read_question"]
