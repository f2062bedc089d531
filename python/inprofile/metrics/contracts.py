"""Contracts first: how well each was kept, by flow, group and experiment, and who got what lies beyond them.

A contract is *kept* in a run where the flow's throughput on the wire, over the measured window, reaches it;
UDP that offers less than its contract keeps it where it lost nothing. Transfers are over when they have sent
what they carry: a rate over a window says nothing about them, and they are left out.

What lies beyond the contracts, the *excess*, is max(0, x − r) of a flow with contract r and all of a flow
without one; its split says who got it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from .quantity import bracketed, pm, quantity
from .stats import POSITIVE, SHARE, Estimate, Interval, estimate
from .summary import bounds_of, html_table, text_table

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from .flow_figures import Runs

    Array = NDArray[np.float64]

#: Flows whose figures are taken from arrays at a time.
_BLOCK = 128
#: Figures of a run, with their units, as sweeps and plans keep them.
BY_RUN = {
    "contracts_kept": "1",
    "all_contracts_kept": "1",
    "assurance_worst": "1",
    "best_effort": "bit/s",
    "excess_share": "1",
}


@dataclass(frozen=True)
class Kept:
    """How well the contracts of a flow, of a group, or of all flows were kept."""

    name: str
    """The flow's or group's; "all contracts"."""
    flows: int
    """How many have a contract."""
    contract: float
    """bit/s, all of them together."""
    kept: Estimate
    """Share of the contracts that a run kept; over the runs."""
    whole_runs: int
    """Runs in which every one of them was kept."""
    runs: int
    whole: Interval
    """95 % interval of the share of such runs."""
    assurance: Estimate
    """Assurance ratio: throughput over contract, mean over the flows."""
    worst: float
    """Least assurance ratio of any flow in any run."""
    worst_flow: str
    worst_seed: int
    excess: Estimate
    """bit/s beyond the contracts."""
    excess_share: Estimate | None
    """The same as a share of what all flows got beyond contracts; None where that is nothing."""

    def to_json(self) -> dict[str, Any]:
        """As `inprofile run --json` prints it."""
        return {
            "name": self.name,
            "flows": self.flows,
            "contract": self.contract,
            "kept": _json(self.kept, "1"),
            "runs_all_kept": {"kept": self.whole_runs, "of": self.runs, "ci95": list(self.whole)},
            "assurance_ratio": _json(self.assurance, "1"),
            "worst": {"assurance_ratio": self.worst, "flow": self.worst_flow, "seed": self.worst_seed},
            "excess": _json(self.excess, "bit/s"),
            "excess_share": None if self.excess_share is None else _json(self.excess_share, "1"),
        }


@dataclass(frozen=True)
class BestEffort:
    """The throughput of all flows without a contract together."""

    flows: int
    throughput: Estimate
    """bit/s on the wire."""
    share: Estimate
    """The same as a share of what all flows got."""

    def to_json(self) -> dict[str, Any]:
        """As `inprofile run --json` prints it."""
        return {
            "flows": self.flows,
            "throughput": _json(self.throughput, "bit/s"),
            "share": _json(self.share, "1"),
        }


class Contracts:
    """The contracts of a result.

    >>> import inprofile
    >>> result = inprofile.parse(inprofile.STARTER).with_(duration="30 s", seeds=2).run()
    >>> found = Contracts(result)
    >>> [row.name for row in found.groups], found.total.flows, found.total.runs
    (['assured'], 4, 2)
    """

    def __init__(self, result: Runs) -> None:
        """From the table `flows`."""
        self._take(result.flows, result.seeds)

    @classmethod
    def of(cls, flows: pa.Table, seeds: tuple[int, ...]) -> Contracts:
        """From a table `flows` of one experiment with these seeds."""
        made = cls.__new__(cls)
        made._take(flows, seeds)
        return made

    def _take(self, table: pa.Table, seeds: tuple[int, ...]) -> None:
        import numpy as np

        from .flow_figures import FlowRows
        from .measures import in_order_of_seeds

        self.seeds = seeds
        order = in_order_of_seeds(table, seeds)
        # As nearly always, then without a copy of a million rows.
        in_order = bool(np.array_equal(order, np.arange(table.num_rows)))
        #: Seed by seed, the flows of each in the order of the experiment.
        self._rows = rows = FlowRows(table, None if in_order else order)

        def of_seeds(column: NDArray[Any]) -> NDArray[Any]:
            """Seeds × flows."""
            return column.reshape(len(seeds), -1)

        self._got, self._kept, self._beyond = map(of_seeds, (rows.got, rows.kept, rows.beyond))
        self._promised, self._has, self._free = (
            of_seeds(column)[0] for column in (rows.promised, rows.has, rows.free)
        )
        self._starts = np.arange(len(seeds)) * self._got.shape[1]
        n = self._got.shape[1]
        first = table.slice(0, n)
        # Text stays Arrow's: there may be a million flows.
        self._names = first["flow"].combine_chunks()
        groups = first["group"].combine_chunks().dictionary_encode()
        self._group_names = groups.dictionary.to_pylist()
        self._groups = groups.indices.to_numpy()
        self._all_beyond = self._beyond.sum(axis=1)

    def __bool__(self) -> bool:
        """Whether anybody has a contract."""
        return bool(self._has.any())

    @cached_property
    def groups(self) -> list[Kept]:
        """A row for each group with contracts, in the order of the experiment."""
        import numpy as np

        return [
            self._row(str(self._group_names[group]), np.flatnonzero((self._groups == group) & self._has))
            for group in dict.fromkeys(self._groups[self._has].tolist())
        ]

    @cached_property
    def total(self) -> Kept:
        """All contracts of the experiment. Raises ValueError where there are none."""
        import numpy as np

        return self._row("all contracts", np.flatnonzero(self._has))

    def flows(self) -> Iterator[Kept | None]:
        """A row for each flow, in the order of the experiment; None for one without a contract to keep.

        They are made one by one: there may be a million.
        """
        import numpy as np

        runs = len(self.seeds)
        nobody = bool(self._all_beyond.min() <= 0)
        beyond_all = np.where(self._all_beyond > 0, self._all_beyond, np.nan)[:, np.newaxis]
        for start in range(0, len(self._has), _BLOCK):
            block = slice(start, start + _BLOCK)
            beyond, promised = self._beyond[:, block], self._promised[block]
            columns = (self._kept[:, block], self._got[:, block] / promised, beyond, beyond / beyond_all)
            names = self._names.slice(start, _BLOCK).to_pylist()
            of_flows = zip(*(column.T.tolist() for column in columns), strict=True)
            has = self._has[block].tolist()
            for name, r, any_, (kept, ratio, excess, shares) in zip(
                names, promised.tolist(), has, of_flows, strict=True
            ):
                if not any_:
                    yield None
                    continue
                whole, worst = sum(kept), min(ratio)
                yield Kept(
                    name,
                    1,
                    r,
                    Estimate(whole / runs, shares_of_runs(whole, runs) if runs > 1 else None, runs),
                    whole,
                    runs,
                    shares_of_runs(whole, runs),
                    estimate(ratio, POSITIVE),
                    worst,
                    name,
                    self.seeds[ratio.index(worst)],
                    estimate(excess, POSITIVE),
                    None if nobody else _share_of_excess(shares),
                )

    def flow(self, name: str) -> Kept | None:
        """One flow's row; None where it has no contract to keep. Raises ValueError for an unknown flow."""
        import numpy as np

        i = self._names.index(name).as_py()
        if i < 0:
            raise ValueError(f"no flow is called {name!r}")
        return self._row(name, np.array([i])) if self._has[i] else None

    @cached_property
    def best_effort(self) -> BestEffort | None:
        """The throughput of flows without a contract; None where every flow has one."""
        import numpy as np

        if not self._free.any():
            return None
        got, all_ = self._got[:, self._free].sum(axis=1), self._got.sum(axis=1)
        share = np.divide(got, all_, out=np.zeros_like(got), where=all_ > 0)
        return BestEffort(int(self._free.sum()), _estimate(got), estimate(share.tolist(), SHARE))

    def by_run(self) -> dict[str, Array]:
        """Figures of `BY_RUN`, one a seed; those that do not exist (nobody has a contract) are left out.

        `FlowRows.figures` says what they are.
        """
        found = self._rows.figures(self._starts)
        contracts, free = bool(self), bool(self._free.any())
        return {name: found[name] for name in BY_RUN if (free if name == "best_effort" else contracts)}

    def worst_flows(self) -> list[str]:
        """By seed, the flow whose assurance ratio is least; empty without contracts."""
        if not self:
            return []
        flows = self._rows.worst(self._starts) - self._starts
        return [str(self._names[flow].as_py()) for flow in flows.tolist()]

    def _row(self, name: str, which: NDArray[np.intp]) -> Kept:
        import numpy as np

        if not which.size:
            raise ValueError("no flow has a contract")
        kept, promised = self._kept[:, which], self._promised[which]
        ratio = self._got[:, which] / promised
        seed, flow = np.unravel_index(int(ratio.argmin()), ratio.shape)
        excess = self._beyond[:, which].sum(axis=1)
        whole, runs = int(kept.all(axis=1).sum()), len(self.seeds)
        return Kept(
            name,
            which.size,
            float(promised.sum()),
            _kept_share(kept.mean(axis=1), whole),
            whole,
            runs,
            shares_of_runs(whole, runs),
            _estimate(ratio.mean(axis=1)),
            float(ratio[seed, flow]),
            self._names[int(which[flow])].as_py(),
            self.seeds[int(seed)],
            _estimate(excess),
            self._split(excess),
        )

    def _split(self, excess: Array) -> Estimate | None:
        """A part of what all flows got beyond contracts; None where that is nothing in some run."""
        if self._all_beyond.min() <= 0:
            return None
        return _share_of_excess((excess / self._all_beyond).tolist())

    def to_json(self) -> dict[str, Any]:
        """As `inprofile run --json` prints it: experiment (null without contracts), groups, best effort."""
        return {
            "experiment": self.total.to_json() if self else None,
            "groups": [row.to_json() for row in self.groups],
            "best_effort": None if self.best_effort is None else self.best_effort.to_json(),
        }

    def words(self, link: str = "", rate: float | None = None) -> str:
        """All contracts in a sentence: how much is subscribed, how often all were kept, the worst."""
        t = self.total
        of = ""
        if rate is not None:
            of = f" of {quantity(rate, 'bit/s')} at {link} ({100 * t.contract / rate:.0f} %)"
        lo, hi = t.whole
        return (
            f"Contracts: {t.flows}, together {quantity(t.contract, 'bit/s')}{of}.\n"
            f"All kept in {t.whole_runs} of {t.runs} run{'s' * (t.runs != 1)}"
            f" (95 %: {100 * lo:.0f} to {100 * hi:.0f} %);"
            f" worst: {t.worst_flow}, {t.worst:.2f} of its contract in seed {t.worst_seed}."
        )

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Heading and rows, as text: groups, all contracts where there are several, best effort."""
        rows = [*self.groups, *([self.total] if len(self.groups) > 1 else [])]
        body = [
            [
                row.name,
                str(row.flows),
                _percent(row.kept),
                f"{row.whole_runs} of {row.runs}",
                pm(row.assurance),
                f"{row.worst:.2f}",
                quantity(row.excess.mean, "bit/s", 3),
                "–" if row.excess_share is None else _percent(row.excess_share),
            ]
            for row in rows
        ]
        if self.best_effort is not None:
            b = self.best_effort
            rate = quantity(b.throughput.mean, "bit/s", 3)
            split = self._split(self._beyond[:, self._free].sum(axis=1))
            words = "–" if split is None else _percent(split)
            body.append(["best effort", str(b.flows), "–", "–", "–", "–", rate, words])
        return [
            "contracts",
            "flows",
            "kept",
            "runs, all kept",
            "assurance ratio",
            "worst",
            "excess",
            "of the excess",
        ], body

    def __repr__(self) -> str:
        return text_table(*self.table())

    def _repr_html_(self) -> str:
        return html_table(*self.table())


@cache
def shares_of_runs(good: int, runs: int) -> Interval:
    """95 % interval of a share of runs, exact (Clopper and Pearson 1934).

    >>> lo, hi = shares_of_runs(300, 300)
    >>> round(lo, 4), hi
    (0.9878, 1.0)
    """
    from scipy.special import betaincinv

    lo = 0.0 if good == 0 else float(betaincinv(good, runs - good + 1, 0.025))
    hi = 1.0 if good == runs else float(betaincinv(good + 1, runs - good, 0.975))
    return Interval(lo, hi)


def _share_of_excess(shares: list[float]) -> Estimate:
    """A part of the excess, over the runs."""
    if all(share == 1.0 for share in shares):
        # Nobody else is there to get any: no sample's figure.
        return Estimate(1.0, Interval(1.0, 1.0), len(shares))
    return estimate(shares, SHARE)


def _estimate(values: Array) -> Estimate:
    return estimate(values.tolist(), POSITIVE)


def _kept_share(values: Array, whole: int) -> Estimate:
    """Mean of the shares that runs kept. Where all are 1 or all 0, exact: such runs are a count.

    What all runs kept is at least as likely as the exact interval of their share says.
    """
    if values.min() == values.max() and values[0] in (0.0, 1.0):
        interval = shares_of_runs(whole, len(values)) if len(values) > 1 else None
        return Estimate(float(values[0]), interval, len(values))
    if set(values.tolist()) <= {0.0, 1.0}:
        return Estimate(float(values.mean()), shares_of_runs(whole, len(values)), len(values))
    return estimate(values.tolist(), SHARE)


def figure_over_runs(name: str, values: Iterable[float]) -> Estimate:
    """A metric's mean over runs with its 95 % interval; of what a run keeps or does not, the exact one.

    >>> lo, hi = figure_over_runs("all_contracts_kept", [1.0] * 20).ci95
    >>> round(lo, 3), hi
    (0.832, 1.0)
    """
    import numpy as np

    xs = [float(x) for x in values]
    if name in ("contracts_kept", "all_contracts_kept") and len(xs) > 1:
        return _kept_share(np.asarray(xs), sum(x == 1.0 for x in xs))
    return estimate(xs, bounds_of(name, xs))


def _percent(e: Estimate) -> str:
    """A share with its interval, in whole per cent."""
    known = e.ci95 is not None and e.ci95.lo < e.ci95.hi
    return bracketed(e.mean, e.ci95 if known else None, 0, "%", 0.01)


def _json(e: Estimate, unit: str) -> dict[str, Any]:
    ci95: Sequence[float | None] = e.ci95 or (None, None)
    return {"unit": unit, "mean": e.mean, "ci95": list(ci95), "n": e.n}
