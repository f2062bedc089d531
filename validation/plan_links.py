"""`inprofile plan` on drawn links of which it is known whether a setting keeps the contracts.

python validation/plan_links.py [--links 20]

No setting keeps contracts that are, with what best effort has to get, more than the link: the bound. And one
does where a grid of T, rate and depth has it, with 40 seeds; a link of which neither says anything is drawn
again. The plan has its default number of trials and RIO alone to choose from, and goes as far as the fresh
seeds. Where it finds nothing, what it says of twice the link and half the contracts is held against the grid.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from inprofile.experiment.scenario import Scenario
from inprofile.run.pool import Local
from inprofile.studies.plan.contracts import SELECTED, TRIALS, Answer, plan
from inprofile.studies.plan.question import Question, question_of
from inprofile.studies.plan.search import Tried, best_of, judge, measured
from inprofile.studies.plan.store import Bench

SHARES = (0.15, 0.4, 0.65, 0.9)
"""T: so far from the shortest to the longest, in equal ratios."""
RATES = (0.9, 0.95, 1.0, 1.02, 1.05, 1.1, 1.15, 1.25, 1.4)
DEPTHS = (0.15, 1.0)
"""In seconds of the contract."""


@dataclass(frozen=True)
class Link:
    """A drawn link."""

    rate: int
    """kbit/s."""
    sold: float
    """Share of the link."""
    customers: int
    others: int
    rtt: int
    """ms: the longest; the shortest is half of it."""
    best_effort: float
    """Share of the link that best effort has to get."""

    @property
    def contract(self) -> float:
        """kbit/s, of each customer."""
        return self.rate * self.sold / self.customers

    def __str__(self) -> str:
        """In words."""
        return (
            f"{self.rate / 1e3:g} Mbit/s, {100 * self.sold:.0f} % sold to {self.customers},"
            f" {self.others} others, {self.rtt} ms, {100 * self.best_effort:.0f} % for them"
        )

    def scenario(self) -> Scenario:
        """Its experiment, with the goal."""
        group = f'from = "H*"\nto = "core"\nrtt = "{self.rtt // 2}..{self.rtt} ms"\nstart = "uniform 0..1 s"'
        join = f'join = {{ node = "edge", rate = "{10 * self.rate} kbit/s" }}'
        buffer = max(40, round(self.rate * 0.15 / 12))
        return Scenario(f"""\
title = "A drawn link"
duration = "12 s"
measure = {{ from = "4 s", to = "12 s" }}
tcp = {{ profile = "linux" }}
links = [{{ name = "uplink", from = "edge", to = "core", rate = "{self.rate} kbit/s", delay = "1 ms", \
queue = {{ aqm = "drop_tail", limit = "{buffer} packets" }} }}]
[[flows]]
name = "gold"
count = {self.customers}
contract = "{self.contract:.0f} kbit/s"
{group}
{join}
[[flows]]
name = "free"
count = {self.others}
{group}
{join}
[plan]
kept = "95 %"
best_effort = "{100 * self.best_effort:.0f} %"
schemes = ["rio"]
""")


def drawn() -> Iterator[Link]:
    """Links, the same every time: half of them have little left to sell, a quarter are oversold."""
    chance = random.Random(31)  # noqa: S311 - what is drawn is no secret
    while True:
        yield Link(
            chance.choice((4000, 8000, 12000)),
            round(chance.uniform(*chance.choice(((0.3, 0.8), (0.9, 0.97), (0.9, 0.97), (1.0, 1.1)))), 3),
            chance.randint(2, 8),
            chance.randint(2, 6),
            chance.choice((20, 40, 80)),
            chance.choice((0.0, 0.0, 0.05, 0.2)),
        )


def by_grid(question: Question, bench: Bench) -> Tried | None:
    """The best setting of the grid that meets the goal with 40 seeds, if one does."""
    (scheme,) = question.schemes
    ranges = question.longest / question.shortest
    tried = measured(
        question,
        bench,
        [
            (
                scheme,
                {
                    "T": question.shortest * ranges**share,
                    "flows.rate": rate,
                    "flows.depth": depth,
                    "queue.out.*_th": 0.316,
                    "queue.out.max_p": 0.1,
                    "queue.w_q": 0.003,
                },
            )
            for share, rate, depth in itertools.product(SHARES, RATES, DEPTHS)
        ],
    )
    for one in best_of(tried, 4, 4):
        (runs,) = bench.run([(question.put(scheme, one.settings), SELECTED)])
        if (judged := judge(question, runs)).violation == 0:
            return Tried(scheme, one.settings, runs, judged)
    return None


def known(question: Question) -> tuple[bool, str] | None:
    """Whether a setting meets the goal, and by what that is known."""
    wanted = (question.bought + question.goal.best_effort) / question.link_rate
    if wanted > 1:
        return False, f"{100 * wanted:.0f} % of the link wanted"
    found = by_grid(question, Bench(question.scenario, None, Local(), lambda _: None))
    if found is None:
        return None
    s, got = found.settings, found.judged.best_effort / question.link_rate
    return True, (
        f"T {1e3 * s['T']:.1f} ms, CIR {s['flows.rate']:g}, {s['flows.depth']:g} s:"
        f" best effort {100 * got:.0f} %"
    )


def remedies(link: Link, question: Question, answer: Answer) -> Iterator[tuple[str, bool]]:
    """Whether what is said of twice the link and half the contracts is so, where that is known."""
    for lever, factor, other in (
        ("link", 2.0, {"links.uplink.rate": f"{2 * link.rate} kbit/s"}),
        ("contracts", 0.5, {"flows.gold.contract": f"{link.contract / 2:.0f} kbit/s"}),
    ):
        truth = known(question.of(question.scenario.with_(other)))
        change = next(c for c in answer.changes if (c.lever, c.factor) == (lever, factor))
        if truth is not None:
            yield f"{change.what} {'helps' if change.met else 'does not help'}", truth[0] == change.met


def main() -> int:
    """A line a link; 1 where a plan says other than what is known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--links", type=int, default=20)
    wanted = parser.parse_args().links
    made = wrong = skipped = 0
    links = drawn()
    while made < wanted:
        link = next(links)
        question = question_of(link.scenario())
        truth = known(question)
        if truth is None:
            skipped += 1
            continue
        made += 1
        answer = plan(question, trials=TRIALS)
        agrees, said = truth[0] == (answer.chosen is not None), "none"
        if answer.chosen is not None:
            got = float(answer.chosen.runs["best_effort"].mean()) / question.link_rate
            said = f"best effort {100 * got:.0f} %"
        else:
            for words, so in remedies(link, question, answer):
                said += f", {words}"
                agrees = agrees and so
        wrong += not agrees
        sys.stdout.write(
            f"{'same ' if agrees else 'OTHER'} {link}: {'met' if truth[0] else 'not met'} ({truth[1]});"
            f" the plan: {said}\n"
        )
        sys.stdout.flush()
    sys.stdout.write(f"{made - wrong} of {made} as known; {skipped} of which nothing is known\n")
    return min(1, wrong)


if __name__ == "__main__":
    sys.exit(main())
