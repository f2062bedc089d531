"""Claims B1 and B6, and Table I beside ours: every flow's throughput, marked and lost packets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ...metrics.measures import Array, Measures
from ...metrics.stats import UNLIKE
from .. import Cell, Paper
from ..claim import Comparison, Effect, Finding, Number
from ..report import TableRow, row
from .shared import (
    BE,
    Cells,
    Side,
    in_kbit,
    is_kept,
    is_missed,
    of_table_1,
    paired,
    printed_table,
    profiles,
    rival,
    titles,
)

#: What the page calls Table I's columns.
WORDS = {"throughput": "throughput", "marked_out": "OUT packets", "loss_out": "OUT loss"}
#: Fig. 5: where best effort's OUT loss lies beside the assured flows', under RIO and under RI+O.
SIDES: tuple[Side, Side] = ("below", "above")
#: Columns of Table I, with their units.
COLUMNS = {"throughput": "bit/s", "marked_in": "packets", "marked_out": "packets", "loss_out": ""}


def _schemes_apart(
    paper: Paper, runs: Mapping[str, Measures], measure: str, side: Side, unit: str
) -> list[Comparison]:
    """RI+O on that side of RIO for every assured flow of Table I, and on the other for best effort."""
    other: Side = "below" if side == "above" else "above"
    flows = [(group, f"the {in_kbit(profile)} flow", side) for group, profile in profiles(paper).items()]
    return [
        paired(runs).compare(
            f"{WORDS[measure]} of {flow}, RI+O {where} RIO",
            f"{measure}:{group}",
            where,
            unit,
            effect=Effect(abs(change) / 10, "a tenth of the change that Table I prints"),
        )
        for (group, flow, where), change in zip(
            [*flows, (BE, "a best-effort flow", other)], _printed_change(paper, measure), strict=True
        )
    ]


def _printed_change(paper: Paper, measure: str) -> list[float]:
    """From RIO to RI+O in Table I, flow by flow."""
    rio, plus = (printed_table(paper, scheme).numbers(measure) for scheme in titles(paper))
    return [b - a for a, b in zip(rio, plus, strict=True)]


def b1a(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B1a: every assured flow gains, best effort pays."""
    runs = of_table_1(paper, cells, setup)
    compared = [
        *_schemes_apart(paper, runs, "throughput", "above", "bit/s"),
        *_schemes_apart(paper, runs, "marked_out", "above", "packets"),
    ]
    return Finding("B1a", setup, compared, list(_numbers(paper, runs, "throughput", "bit/s")))


def _numbers(paper: Paper, runs: Mapping[str, Measures], measure: str, unit: str) -> Iterator[Number]:
    """Table I's column of this measure beside ours."""
    for scheme, title in titles(paper).items():
        column = printed_table(paper, scheme).numbers(measure)
        for group, value in zip((*profiles(paper), BE), column, strict=True):
            yield Number(
                f"{WORDS[measure]}, {_who(paper, group)}, {title}",
                list(runs[scheme][f"{measure}:{group}"]),
                value,
                "Table I",
                unit,
                bounds=(0.0, np.inf),
                rival=list(runs[rival(paper, scheme)][f"{measure}:{group}"]),
            )


def _who(paper: Paper, group: str) -> str:
    return "best effort" if group == BE else in_kbit(profiles(paper)[group])


def b1b(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B1b: the large profiles are missed under RIO, none under RI+O."""
    runs = of_table_1(paper, cells, setup)
    compared = []
    missed = paper.top.table("bounds").number("missed")
    for group, profile in profiles(paper).items():
        rio, plus = (runs[scheme][f"throughput:{group}"] / profile for scheme in titles(paper))
        judged = is_missed if profile >= missed else is_kept
        compared.append(judged(paper, f"RIO: profile of {in_kbit(profile)}", rio))
        compared.append(is_kept(paper, f"RI+O: profile of {in_kbit(profile)}", plus))
    lost = {g: runs["rio"][f"throughput:{g}"].mean() / r for g, r in profiles(paper).items() if r >= missed}
    told = ", ".join(f"{share:.2f} of {in_kbit(profiles(paper)[g])}" for g, share in lost.items())
    return Finding("B1b", setup, compared, notes=[f"Of those that RIO is to miss it gives {told}."])


def b1c(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B1c: large profiles gain most."""
    pair = paired(of_table_1(paper, cells, setup))
    gain = {g: np.array(pair.difference(f"throughput:{g}")) for g in profiles(paper)}
    more = list(gain["as4"] - gain["as0"])
    label = "gain of the 1350 kbit/s flow above that of the 270 kbit/s flow"
    ours = ", ".join(f"{gain[g].mean() / 1e3:+.0f}" for g in gain)
    rio, plus = (printed_table(paper, s).numbers("throughput")[:-1] for s in titles(paper))
    printed = ", ".join(f"{(b - a) / 1e3:+.0f}" for a, b in zip(rio, plus, strict=True))
    note = (
        f"Gains by profile: {ours} kbit/s; in the paper's own Table I {printed}, which contradicts its words,"
        " the more so relative to the profile."
    )
    of_table = Number(
        label,
        more,
        (plus[-1] - rio[-1]) - (plus[0] - rio[0]),
        "Table I",
        "bit/s",
        rival=[0.0] * len(more),
        rival_words="equal gains",
    )
    tenth = max(_printed_change(paper, "throughput")) / 10
    counts = Effect(tenth, "a tenth of the largest gain that Table I prints")
    return Finding(
        "B1c", setup, [Comparison(label, more, "above", unit="bit/s", effect=counts)], [of_table], [note]
    )


def b6(paper: Paper, cells: Cells, setup: str) -> Finding:
    """B6: whose OUT packets are dropped more often."""
    runs = of_table_1(paper, cells, setup)
    compared = [
        *_schemes_apart(paper, runs, "loss_out", "below", ""),
        *(
            Comparison(
                f"{title}: OUT loss of a best-effort flow {side} the mean of the assured flows'",
                list(runs[scheme]["loss_out:be"] - _assured_loss(paper, runs[scheme])),
                side,
                bounds=UNLIKE,
                effect=Effect(
                    abs(_printed_difference(paper, scheme)) / 10,
                    "a tenth of the difference that Table I prints",
                ),
            )
            for (scheme, title), side in zip(titles(paper).items(), SIDES, strict=True)
        ),
    ]
    ratio = [
        float(np.mean([m[f"loss_out:{g}"].mean() for g in profiles(paper)]) / m["loss_out:be"].mean())
        for m in runs.values()
    ]
    printed = [_printed_ratio(paper, s) for s in titles(paper)]
    note = (
        f"OUT loss of an assured flow over that of best effort: {ratio[0]:.1f} under RIO,"
        f" {ratio[1]:.1f} under RI+O (Table I: {printed[0]:.1f} and {printed[1]:.1f})."
    )
    return Finding("B6", setup, compared, list(_numbers(paper, runs, "loss_out", "")), [note])


def _assured_loss(paper: Paper, m: Measures) -> Array:
    """Mean OUT loss of the assured flows, seed by seed."""
    return np.asarray(np.mean([m[f"loss_out:{group}"] for group in profiles(paper)], axis=0))


def _printed_difference(paper: Paper, scheme: str) -> float:
    """Table I: mean OUT loss of the assured flows, less that of best effort."""
    loss = printed_table(paper, scheme).numbers("loss_out")
    return float(np.mean(loss[:-1])) - loss[-1]


def _printed_ratio(paper: Paper, scheme: str) -> float:
    """Table I: mean OUT loss of the assured flows over that of best effort."""
    loss = printed_table(paper, scheme).numbers("loss_out")
    return float(np.mean(loss[:-1]) / loss[-1])


def table(paper: Paper, cells: Cells) -> list[TableRow]:
    """Table I beside ours: a row a flow, column, scheme and set-up; and the link's utilisation."""
    made = []
    for setup in paper.setups:
        for scheme, title in titles(paper).items():
            printed, cell = printed_table(paper, scheme), Cell(setup.id, "table-1", scheme)
            m = cells[cell]
            for what, unit in COLUMNS.items():
                for group, value in zip((*profiles(paper), BE), printed.numbers(what), strict=True):
                    label, values = f"{title}, {_who(paper, group)}", m[f"{what}:{group}"]
                    made.append(
                        row(
                            cell,
                            m.seeds,
                            values,
                            table="Table I",
                            what=what,
                            label=label,
                            unit=unit,
                            paper=value,
                        )
                    )
            use, what = printed.number("utilisation"), "utilisation"
            made.append(row(cell, m.seeds, m[what], table="Table I", what=what, label=title, paper=use))
    return made
