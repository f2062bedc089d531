"""How many more customers fit, in words and as one object."""

from __future__ import annotations

from typing import Any

from ....metrics.quantity import bracketed, quantity
from ....metrics.summary import text_table
from .answer import Answer, Broken, Fit, Tried


def as_json(answer: Answer) -> dict[str, Any]:
    """The answer as one object."""
    network = answer.network
    return {
        "title": network.scenario.title,
        "file": network.scenario.file,
        "tree": network.name,
        "kept": network.kept,
        "met": answer.met,
        "runs": answer.runs,
        "places": [
            {
                "level": fit.place.level,
                "node": fit.place.node,
                "group": fit.kind.name,
                "there": network.customers(fit.kind, fit.place),
                "by_contract": fit.by_contract,
                "fits": None if fit.fits is None else _tried(fit.fits),
                "too_many": None if fit.too_many is None else _tried(fit.too_many),
            }
            for fit in answer.fits
        ],
    }


def _tried(tried: Tried) -> dict[str, Any]:
    below, everywhere, broken = tried.below, tried.everywhere, tried.broken
    return {
        "more": tried.more,
        "runs": below.runs,
        "share_kept": {"mean": below.share, "ci95": list(tried.interval), "n": below.runs},
        "share_kept_everywhere": everywhere.share,
        "missed": broken.missed,
        "breaks_first": None
        if broken.link is None
        else {"link": broken.link, "level": broken.level, "share": broken.share, "packets": broken.colour},
    }


def as_text(answer: Answer) -> str:
    """The goal, a row for each place and kind, and a sentence for each link that breaks."""
    network = answer.network
    head = (
        f"{network.scenario.title}\nThe tree {network.name}: how many more customers fit, where"
        f" {100 * network.kept:g} % of the contracts are kept. {answer.runs:,} runs."
    )
    heading = ["more below", "group", "there", "sold by contract", "fit", "contracts kept"]
    heading += ["do not fit", "then kept"]
    table = text_table(heading, [_row(answer, fit) for fit in answer.fits])
    return "\n\n".join([head, table, "\n".join(map(_sentence, answer.fits))])


def _row(answer: Answer, fit: Fit) -> list[str]:
    fits, too_many = fit.fits, fit.too_many
    return [
        fit.place.node,
        fit.kind.name,
        f"{answer.network.customers(fit.kind, fit.place):,}",
        "–" if fit.by_contract is None else f"{fit.by_contract:,}",
        "none: not kept as it is" if fits is None else f"{fits.more:,}",
        "–" if fits is None else _share(fits),
        "–" if too_many is None else f"{too_many.more:,}",
        "–" if too_many is None else _share(too_many),
    ]


def _share(tried: Tried) -> str:
    return bracketed(tried.below.share, tried.interval, 2, "%", 0.01)


def _sentence(fit: Fit) -> str:
    """What breaks, with how many."""
    tried = fit.too_many
    if tried is None:
        more = 0 if fit.fits is None else fit.fits.more
        return f"Below {fit.place.node} nothing breaks with {more:,} more {fit.kind.name}."
    rate = f" ({quantity(tried.more * fit.kind.contract, 'bit/s')} of contracts)" if fit.kind.contract else ""
    return f"With {tried.more:,} more {fit.kind.name}{rate} below {fit.place.node} {_breaks(tried.broken)}."


def _breaks(broken: Broken) -> str:
    if not broken.missed:
        return "contracts elsewhere are missed"
    if broken.link is None:
        return f"{broken.missed:,} contracts are missed without a packet lost: round trips are too long"
    what = "IN packets" if broken.colour == "IN" else "packets"
    contracts = "contract" if broken.missed == 1 else "contracts"
    return (
        f"{broken.link} breaks first: {broken.missed:,} {contracts} missed, of whose {what} that were lost"
        f" {100 * broken.share:.0f} % were lost there"
    )
