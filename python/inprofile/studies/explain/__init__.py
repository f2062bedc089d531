"""Why a flow, or a group of them, got what it got: contract, marks, losses and timeouts, next to the others'.

Every statement is read off one result. Where the variation between seeds exceeds a difference, that is stated
instead of a reason. Shares of losses are of the whole run, rates and marks of the measured window.
"""

from __future__ import annotations

import json
import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...metrics.quantity import number, pm, quantity
from ...metrics.response import law_of
from ...metrics.stats import POSITIVE, Estimate, estimate, mean, paired
from .cause import Verdict, judged, sentence
from .explanation import CAUSES, Explanation, Fate, Figure, UnknownFlow, subject
from .facts import Facts, Loss

if TYPE_CHECKING:
    from ...metrics.contracts import Kept
    from ...run.results import Result

__all__ = ["Explanation", "Fate", "Figure", "UnknownFlow", "explain"]


MISSED = 0.95
"""A flow that got less than this share of its contract has missed it."""
STARVED = 0.8
"""The same share of what the others got, for a flow without a contract."""


def explain(result: Result, flow: str | int, *, sampled: bool = True) -> Explanation:
    """Explain what `flow` (its name, its number in the order of the experiment, or its group's name) got.

    >>> import inprofile
    >>> result = inprofile.parse(inprofile.STARTER).with_(duration="30 s", seeds=2).run()
    >>> explain(result, 3).flow
    'assured.3'

    Unless `sampled`, its congestion window and the figures behind its losses are left out: then neither
    samples nor verdicts of the result are read. Raises UnknownFlow.
    """
    return _Case(result, flow, sampled).explanation()


class _Case:
    """The rows that bear on one flow."""

    def __init__(self, result: Result, flow: str | int, sampled: bool) -> None:
        self.result = result
        self.sampled = sampled
        self.measure = result.provenance.effective["measure"]
        self.rows: dict[str, list[dict[str, Any]]] = {}
        for row in result.flows.to_pylist():
            self.rows.setdefault(row["flow"], []).append(row)
        self.about = subject(self.rows, flow)
        self.flow, self.group, self.flows, self.mine, self.peers = (
            self.about.name,
            self.about.group,
            self.about.flows,
            self.about.rows,
            self.about.peers,
        )
        self.marked = {str(row["place"]) for row in result.markers.to_pylist()}

    def explanation(self) -> Explanation:
        return Explanation(
            self.flow,
            self.group,
            self.flows,
            self.peers,
            self.result.seeds,
            self.mine[0]["contract"],
            self.kept,
            self.throughput,
            tuple((int(row["seed"]), float(row["throughput"])) for row in self.mine),
            self.against_peers,
            self.fates,
            self.figures,
            tuple(self._findings()),
            (self.measure["from"], self.measure["to"]),
            self.goal,
            self.verdict.causes,
            self.verdict.together,
            self.verdict.considered,
            self.because,
            self._cwnd(),
        )

    @cached_property
    def goal(self) -> float | None:
        """The rate that it should have got and missed; None where nothing is amiss."""
        contract = self.mine[0]["contract"]
        if contract is not None:
            missed = self.kept is not None and self.throughput.mean < MISSED * contract
            return float(contract) if missed else None
        d = self.against_peers
        fewer = d is not None and d.mean < STARVED - 1 and (d.ci95 is None or d.ci95.hi < 0)
        # Where others have contracts, best effort gets what is left: that is no fault.
        return self.peers_figure("throughput") if fewer else None

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict on what held it down: see `cause.py`."""
        return Verdict() if self.goal is None or self.throughput.mean <= 0 else judged(self._facts(self.goal))

    @cached_property
    def because(self) -> str:
        """The causal sentence."""
        if self.goal is None or not self.verdict.causes:
            return ""
        against = "its contract" if self.mine[0]["contract"] is not None else "what the others got"
        return sentence(self._facts(self.goal), self.verdict, against)

    def _facts(self, goal: float) -> Facts:
        runs = len(self.mine) * len(self.flows)
        lost: dict[tuple[str, str], list[float]] = {}
        for row in self.result.drops.to_pylist():
            if row["flow"] in self.flows:
                counts = lost.setdefault((row["place"], row["cause"]), [0.0, 0.0])
                counts[0] += row["in"] / runs
                counts[1] += (row["out"] + row["red"]) / runs
        used: dict[str, list[float]] = {}
        for row in self.result.queues.to_pylist():
            used.setdefault(row["queue"], []).append(row["utilisation"])
        return Facts(
            self.flow,
            self.group,
            self.flows,
            self.mine,
            self.peers,
            self.rows,
            self.result.provenance.effective,
            goal,
            [Loss(*key, *counts) for key, counts in lost.items()],
            self._queueing(),
            {queue: mean(values) for queue, values in used.items()},
        )

    def figure(self, name: str) -> float:
        """Mean over seeds of one of the flow's figures."""
        return mean(float(row[name]) for row in self.mine)

    def peers_figure(self, name: str) -> float:
        """Mean over seeds and peers."""
        return mean(float(row[name]) for peer in self.peers for row in self.rows[peer])

    @cached_property
    def throughput(self) -> Estimate:
        return estimate((row["throughput"] for row in self.mine), POSITIVE)

    @cached_property
    def against_peers(self) -> Estimate | None:
        ratio = {}
        for row in self.mine:
            rates = [r["throughput"] for p in self.peers for r in self.rows[p] if r["seed"] == row["seed"]]
            if rates and mean(rates) > 0:
                ratio[row["seed"]] = row["throughput"] / mean(rates)
        return paired(ratio, dict.fromkeys(ratio, 1.0)).difference if ratio else None

    @cached_property
    def fates(self) -> tuple[Fate, ...]:
        runs = len(self.mine) * len(self.flows)
        sent = self.figure("sent")
        if sent == 0:
            return ()
        lost: dict[tuple[str, str], list[float]] = {}
        for row in self.result.drops.to_pylist():
            if row["flow"] in self.flows:
                counts = lost.setdefault((row["place"], row["cause"]), [0.0, 0.0])
                counts[0] += row["in"]
                counts[1] += row["out"] + row["red"]
        found = [Fate("delivered", "", self.figure("received"), self.figure("received") / sent, math.nan)]
        for (place, cause), (green, other) in sorted(lost.items(), key=lambda item: -sum(item[1])):
            n = (green + other) / runs
            found.append(Fate(cause, place, n, n / sent, other / (green + other)))
        under_way = self.figure("in_flight")
        return (*found, Fate("in flight", "", under_way, under_way / sent, math.nan))

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """Figures behind the losses, where verdicts were kept."""
        noted: dict[tuple[str, str, str], list[float]] = {}
        if not self.sampled:
            return ()
        verdicts = self.result.verdicts
        if verdicts.num_rows:
            import pyarrow as pa
            import pyarrow.compute as pc

            mine = pc.and_(
                pc.is_in(verdicts["flow"], pa.array(self.flows)), pc.equal(verdicts["verdict"], "drop")
            )
            for row in verdicts.filter(mine).select(["point", "cause", "why"]).to_pylist():
                for name, value in json.loads(row["why"]).items():
                    if isinstance(value, (int, float)):
                        noted.setdefault((row["point"], row["cause"], name), []).append(value)
        return tuple(Figure(*key, mean(vs), min(vs), max(vs)) for key, vs in noted.items())

    def _findings(self) -> list[str]:
        parts = (
            self._of_group(),
            self._contract(),
            self._peers(),
            self._marks(),
            self._losses(),
            self._timeouts(),
            self._law(),
        )
        return [sentence for part in parts for sentence in part]

    def _of_group(self) -> list[str]:
        """For a group: a note that these are means, and the flows to ask for."""
        if not self.about.is_group:
            return []
        got = {flow: mean(float(row["throughput"]) for row in self.rows[flow]) for flow in self.flows}
        least, most = min(got, key=got.__getitem__), max(got, key=got.__getitem__)
        return [
            f"These are means over its {len(self.flows)} flows. {least} got least,"
            f" {quantity(got[least], 'bit/s', 3)}, and {most} most, {quantity(got[most], 'bit/s', 3)}."
        ]

    def _contract(self) -> list[str]:
        got = pm(self.throughput, "bit/s")
        rate = self.mine[0]["contract"]
        if rate is None:
            return [f"It has no contract. It got {got} on the wire.{self._others_contracts()}"]
        share = f"{100 * self.throughput.mean / rate:.0f} %"
        mean_of = " on average" if len({self.rows[f][0]["contract"] for f in self.flows}) > 1 else ""
        head = f"Its contract is {quantity(rate, 'bit/s')}{mean_of}; it got {got} on the wire, {share} of it"
        kept = self.kept
        if kept is not None and self.about.is_group:
            worst = (
                f"the worst was {kept.worst_flow} in seed {kept.worst_seed}, {100 * kept.worst:.0f} % of it"
            )
            return [f"{head}; every contract was kept in {kept.whole_runs} of {kept.runs} runs, {worst}."]
        if kept is None:
            return [f"{head}. A transfer keeps no rate over a window."]
        if kept.runs == 1:
            return [f"{head}: {'kept' if kept.whole_runs else 'missed'}."]
        worst = f"at worst {100 * kept.worst:.0f} % of it (seed {kept.worst_seed})"
        if kept.whole_runs == kept.runs:
            return [f"{head}: kept in all {kept.runs} runs, {worst}."]
        if kept.whole_runs == 0:
            return [f"{head}: missed in all {kept.runs} runs, {worst}."]
        lo, hi = kept.whole
        times = f"kept in {kept.whole_runs} of {kept.runs} runs (95 %: {100 * lo:.0f} to {100 * hi:.0f} %)"
        return [f"{head}: {times}, {worst}."]

    def _others_contracts(self) -> str:
        """For a flow without a contract: what was promised to others before anything is left for it."""
        if not (contracts := self.result.contracts):
            return ""
        total = contracts.total
        return (
            f" Others have contracts, {quantity(total.contract, 'bit/s')} together: all of them were kept in"
            f" {total.whole_runs} of {total.runs} runs."
        )

    @cached_property
    def kept(self) -> Kept | None:
        """How well its contract was kept; None where it has no contract that a rate can keep."""
        if self.about.is_group:
            return next((row for row in self.result.contracts.groups if row.name == self.group), None)
        return self.result.contracts.flow(self.flow)

    def _peers(self) -> list[str]:
        d = self.against_peers
        if d is None:
            return []
        whom = f"the rest of {self.group}"
        if self.group != self.rows[self.peers[0]][0]["group"]:
            contracts = "with" if self.mine[0]["contract"] is not None else "without"
            whom = f"the other flows {contracts} a contract" if self.result.contracts else "the other flows"
        if d.ci95 is None:
            return [
                f"That is {_percent(d.mean)} than the mean of {whom}, in one run; other seeds may differ."
            ]
        if d.ci95.lo <= 0 <= d.ci95.hi:
            return [f"It is statistically tied with the mean of {whom} ({_signed(d.mean)}, {_range(d)})."]
        return [f"That is {_percent(d.mean)} than the mean of {whom} ({_range(d)})."]

    def _marks(self) -> list[str]:
        sent = self.figure("sent_in") + self.figure("sent_out")
        received = self.figure("received_in") + self.figure("received_out")
        if sent == 0 or received == 0:
            return ["It sent or delivered nothing in the measured window."]
        if not self.coloured:
            return []
        own = self.figure("sent_in") / sent
        arrived = self.figure("received_in") / received
        said = [f"{_share(own)} of its packets were sent IN{self._peers_in()}."]
        edges = [r for r in self.result.markers.to_pylist() if r["place"] not in self.rows]
        if self.marked and not edges and not self.marked.intersection(self.flows):
            said = [f"Nothing marks its packets, so that all of them count as IN{self._peers_in()}."]
        if own - arrived > 0.02:
            who = f"the {edges[0]['kind']} marker at {edges[0]['place']}" if edges else "a marker on the way"
            said.append(f"Only {_share(arrived)} of what arrived was still IN: {who} remarked the rest.")
        return said

    @cached_property
    def coloured(self) -> bool:
        """Whether colours tell packets apart, that is, whether anything marks them."""
        return bool(self.marked) or any(row["sent_out"] for runs in self.rows.values() for row in runs)

    def _peers_in(self) -> str:
        if not self.peers:
            return ""
        green = self.peers_figure("sent_in")
        return f", of the others' {_share(green / max(green + self.peers_figure('sent_out'), 1e-300))}"

    def _losses(self) -> list[str]:
        lost = [fate for fate in self.fates if fate.place]
        if not lost:
            return ["It lost no packets."]
        total = sum(fate.packets for fate in lost)
        share = self._loss(self.figure("dropped"), self.figure("sent"))
        versus = ""
        if self.peers:
            versus = (
                f", the others {_share(self._loss(self.peers_figure('dropped'), self.peers_figure('sent')))}"
            )
        said = [f"It lost {_share(share)} of its packets, {number(total, 3)} per run{versus}."]
        worst = lost[0]
        colour = "OUT" if worst.out >= 0.5 else "IN"
        part = worst.out if worst.out >= 0.5 else 1 - worst.out
        coloured = f", {_share(part)} of them {colour}" if self.coloured else ""
        said.append(
            f"{_share(worst.packets / total)} of the losses were {CAUSES.get(worst.what, worst.what)}"
            f" at {worst.place}{coloured}."
        )
        return said

    @staticmethod
    def _loss(dropped: float, sent: float) -> float:
        return dropped / sent if sent else 0.0

    def _timeouts(self) -> list[str]:
        mine, fast = self.figure("timeouts"), self.figure("fast_retransmits")
        if mine + fast == 0:
            return ["It never had to retransmit."]
        versus = f" (the others {number(self.peers_figure('timeouts'), 3)})" if self.peers else ""
        return [
            f"It had {number(mine, 3)} RTOs per run{versus} and recovered from {number(fast, 3)} losses"
            f" without an RTO."
        ]

    def _law(self) -> list[str]:
        """The rate that the law of its TCP gives for loss and round-trip time alone."""
        if not self.peers or self.against_peers is None:
            return []
        p = self._loss(self.figure("dropped"), self.figure("sent"))
        p_peers = self._loss(self.peers_figure("dropped"), self.peers_figure("sent"))
        queueing = self._queueing()
        rtt, rtt_peers = (x("rtt") + queueing for x in (self.figure, self.peers_figure))
        if min(p, p_peers, rtt, rtt_peers) <= 0:
            return []
        kinds = {self._congestion(name) for name in (*self.flows, *self.peers)}
        if len(kinds) > 1:
            named = ", ".join(sorted(kinds))
            return [f"It and the others use different congestion controls ({named}): no law compares them."]
        law = law_of(kinds.pop())
        by_loss = law.rate(p, rtt_peers) / law.rate(p_peers, rtt_peers)
        said = f"its loss rate alone would give a factor of {number(by_loss, 3)}"
        if self.figure("rtt") != self.peers_figure("rtt"):
            by_rtt = law.rate(p_peers, rtt) / law.rate(p_peers, rtt_peers)
            waits = " with the mean queueing delay" if queueing else ""
            said += (
                f", its RTT ({quantity(rtt, 's', 3)}{waits}, the others {quantity(rtt_peers, 's', 3)})"
                f" one of {number(by_rtt, 3)}"
            )
        return [f"By {law.name} {said}; observed: {number(1 + self.against_peers.mean, 3)}."]

    def _queueing(self) -> float:
        """Mean queueing delay at the measured link, in s; 0 where it is not known."""
        waits = [
            row["value"]
            for row in self.result.metrics.to_pylist()
            if row["name"] == "delay_mean" and row["value"] is not None
        ]
        return mean(waits) if waits else 0.0

    def _congestion(self, flow: str) -> str:
        """The congestion control of a flow; Reno where the experiment does not say."""
        effective = self.result.provenance.effective
        groups = {g["name"]: g for g in effective.get("flows", ())}
        found = groups.get(self.rows[flow][0]["group"], effective).get("tcp") or {}
        return str(found.get("congestion", "reno"))

    def _cwnd(self) -> tuple[tuple[float, float], ...]:
        if self.about.is_group or not self.sampled:
            return ()
        import pyarrow.compute as pc

        series = self.result.series
        mask = pc.and_(
            pc.equal(series["seed"], self.result.seeds[0]),
            pc.and_(pc.equal(series["monitor"], self.flow), pc.equal(series["what"], "cwnd")),
        )
        found = series.filter(mask)
        return tuple(zip(found["t"].to_pylist(), found["value"].to_pylist(), strict=True))


def _share(x: float) -> str:
    return f"{100 * x:.{1 if x < 0.1 else 0}f} %"


def _signed(x: float) -> str:
    return f"{100 * x:+.1f} %"


def _percent(x: float) -> str:
    return f"{100 * abs(x):.1f} % {'more' if x >= 0 else 'less'}"


def _range(e: Estimate) -> str:
    return "one run" if e.ci95 is None else f"95 %: {_signed(e.ci95.lo)} to {_signed(e.ci95.hi)}"
