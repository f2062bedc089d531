"""The network changed: more customers; and what would have to change where no setting meets the goal.

A smaller network that behaves like the network: where settings are looked for when a run takes long. Of
each group one in k flows stays, and the links have a kth of their rates; round trips, and queues in time,
are those of the network (SHRiNK: Psounis, Pan, Prabhakar and Wischik 2003: where many flows share a link,
its delay and what a flow gets depend on rate a flow, round trips and thresholds in time). Settings keep
their meaning: T is a time, a bucket's depth a time of the contract; a weight that is applied at each packet
is applied k times as rarely, and counts so much more. What is found is tested on the network (`contracts`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...experiment.dump import document
from ...experiment.scenario import Scenario
from ...metrics.quantity import bits_per_second, quantity
from .question import Question
from .search import Judged, Tried, judge, search, selected
from .store import Bench, RunFigures

#: Keys of a group that may be lists with a value for each flow.
_LISTS = ("rtt", "start", "stop", "contract")
FASTER = (1.1, 1.25, 1.5, 2.0)
SMALLER = (0.95, 0.9, 0.8, 0.7, 0.5)
_AGAIN = 3
"""So many of the best settings of a change are run with other seeds."""


@dataclass(frozen=True)
class Change:
    """A change that was tried, with the settings that were found for it, and whether the goal is met so."""

    what: str
    """In words."""
    lever: str
    """`link`, `contracts`, `delay` or `best_effort`."""
    factor: float
    met: bool
    judged: Judged
    runs: RunFigures
    settings: Mapping[str, float] = field(default_factory=dict)


def with_more(question: Question, group: str, more: int) -> Question:
    """The same network with so many more customers in a group; lists go on with their last value."""
    at = next(g for g in question.scenario.check().effective["flows"] if g["name"] == group)
    written = next(g for g in document(question.scenario)["flows"] if g["name"] == group)
    values: dict[str, object] = {f"flows.{group}.count": at["count"] + more}
    for key in _LISTS:
        if isinstance(found := written.get(key), list):
            values[f"flows.{group}.{key}"] = [*found, *[found[-1]] * more]
    return question.of(question.scenario.with_(values))


def changed(
    question: Question,
    bench: Bench,
    nearest: Tried,
    seeds: Sequence[int],
    trials: int,
    tell: Callable[[str], None],
) -> list[Change]:
    """A faster link, smaller contracts: the smallest step of each that meets the goal, if one does.

    The scheme that came nearest gets as many trials on the changed network as it had: settings that failed on
    the network as it is say nothing of another.
    """
    found: list[Change] = []
    for lever, factors in (("link", FASTER), ("contracts", SMALLER)):

        def tuned(factor: float, lever: str = lever) -> Change:
            words = _words(question, lever, factor)
            tell(words)
            other = question.of(
                _with_rate(question, factor) if lever == "link" else _with_less(question, factor)
            )
            tried = search(other, bench, nearest.scheme, trials, tell)
            best = selected(other, bench, tried, seeds, _AGAIN, _AGAIN)[0]
            return Change(
                words, lever, factor, best.judged.violation == 0, best.judged, best.runs, best.settings
            )

        found += _steps(factors, tuned)
    return [*found, *_lesser_goals(question, nearest)]


def _steps(factors: Sequence[float], tuned: Callable[[float], Change]) -> list[Change]:
    """The greatest step; where it meets the goal, others by halves down to the smallest that does."""
    last = len(factors) - 1
    made = {last: tuned(factors[last])}
    low, high = -1, last
    while made[last].met and high - low > 1:
        middle = (low + high) // 2
        made[middle] = tuned(factors[middle])
        low, high = (low, middle) if made[middle].met else (middle, high)
    return [made[i] for i in sorted(made)]


def _lesser_goals(question: Question, nearest: Tried) -> list[Change]:
    """Delay and best effort as these settings have them, where they miss what is asked for."""
    goal, judged = question.goal, nearest.judged
    found = []
    if goal.delay is not None and judged.delay > goal.delay:
        eased = replace(question, goal=replace(goal, delay=1.05 * judged.delay))
        after = judge(eased, nearest.runs)
        words = f'delay = "{quantity(1.05 * judged.delay, "s", 2)}" instead of {quantity(goal.delay, "s")}'
        found.append(
            Change(words, "delay", judged.delay / goal.delay, after.violation == 0, after, nearest.runs)
        )
    if goal.best_effort > 0 and judged.best_effort < goal.best_effort:
        eased = replace(question, goal=replace(goal, best_effort=0.95 * judged.best_effort))
        after = judge(eased, nearest.runs)
        words = (
            f'best_effort = "{quantity(0.95 * judged.best_effort, "bit/s", 2)}" instead of'
            f" {quantity(goal.best_effort, 'bit/s')}"
        )
        factor = judged.best_effort / goal.best_effort
        found.append(Change(words, "best_effort", factor, after.violation == 0, after, nearest.runs))
    return found


def _with_rate(question: Question, factor: float) -> Scenario:
    return question.scenario.with_(
        {f"links.{question.place.link}.rate": f"{question.link_rate * factor:.0f} bit/s"}
    )


def _with_less(question: Question, factor: float) -> Scenario:
    values: dict[str, object] = {}
    for group in question.scenario.check().effective["flows"]:
        bought = group["contract"]
        if group["name"] not in question.place.contracted:
            continue
        key = f"flows.{group['name']}.contract"
        if isinstance(bought, list):
            values[key] = [_scaled(text, factor) for text in bought]
        else:
            values[key] = _scaled(bought, factor)
    return question.scenario.with_(values)


def _scaled(text: str, factor: float) -> str:
    from ...metrics.quantity import bits_per_second

    return f"{bits_per_second(text) * factor:.0f} bit/s"


def _words(question: Question, lever: str, factor: float) -> str:
    if lever == "link":
        return f"a link of {quantity(question.whole_rate * factor, 'bit/s')}"
    return f"contracts of {100 * factor:.0f} % of what is sold"


LARGE = 500_000
"""Packets of a run above which settings are looked for on a smaller network."""
FEWEST = 4
"""Each group keeps so many flows."""
#: Keys of a group that may be lists with a value for each flow.


def scale_of(question: Question) -> int:
    """One in how many flows the smaller network has; 1 where a run is short, or none can be made."""
    if question.scenario.expected_packets(seeds=1) <= LARGE or not _fits(question):
        return 1
    groups = question.scenario.check().effective["flows"]
    counts: list[int] = [g["count"] for g in groups]
    return max(1, min(counts) // FEWEST)


def _fits(question: Question) -> bool:
    """Whether a limit describes every link's queue, but for the measured link's, which schemes replace."""
    written = document(question.scenario)
    return all(
        "capacity" not in link
        and isinstance(queue := link.get("queue"), Mapping)
        and (link["name"] == question.place.link or queue.get("aqm") == "drop_tail")
        for link in written["links"]
    )


def smaller(question: Question, k: int) -> Question:
    """The same question of a network with one in k flows."""
    if k == 1:
        return question
    effective = question.scenario.check().effective
    values: dict[str, object] = {}
    for group in effective["flows"]:
        count = max(1, round(group["count"] / k))
        values[f"flows.{group['name']}.count"] = count
        for key in _LISTS:
            if isinstance(group[key], list):
                values[f"flows.{group['name']}.{key}"] = _spread(group[key], count)
    fewer = question.of(question.scenario.with_(values))
    # Contracts fill as much of the link as they do: k where all counts are whole multiples.
    ratio = question.bought / fewer.bought
    for link in effective["links"]:
        if "reverse_of" in link:
            continue
        key = f"links.{link['name']}"
        values[f"{key}.rate"] = f"{bits_per_second(link['rate']) / ratio:.0f} bit/s"
        limit = max(2, round(link["queue"]["limit"]["packets"] / ratio))
        values[f"{key}.queue"] = {"aqm": "drop_tail", "limit": f"{limit} packets"}
    return replace(question.of(question.scenario.with_(values)), scale=ratio)


def _spread(values: Sequence[Any], count: int) -> list[Any]:
    """So many of the values, evenly from all of them."""
    return [values[int((i + 0.5) * len(values) / count)] for i in range(count)]
