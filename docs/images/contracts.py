"""The README's picture, and one for narrow screens; `python docs/images/contracts.py` draws both."""

from pathlib import Path
from typing import Any

import altair as alt

import inprofile
from inprofile.charts.plot import IN, OUT, PALETTE

RED = {"aqm": "red", "limit": "60 packets", "min_th": "10 packets", "max_th": "30 packets", "max_p": 0.1}
QUEUES: dict[str, dict[str, Any]] = {
    "Drop-tail": {"aqm": "drop_tail", "limit": "60 packets"},
    "RED": RED,
    "RIO": {},
}
SEEDS = 20


def rows() -> list[dict[str, Any]]:
    """Throughput by queue, flow and seed, in Mbit/s, with the contract and whether this run kept it."""
    made = []
    base = inprofile.parse(inprofile.STARTER).with_(duration="120 s")
    for name, queue in QUEUES.items():
        scenario = base.set("links.bottleneck.queue", queue) if queue else base
        for row in scenario.run(SEEDS).rows("flows"):
            contract, rates = row.given["contract"], row.values["throughput"]
            made += [
                {
                    "queue": name,
                    "contract": f"{contract / 1e3:.0f}",
                    "bought": contract / 1e6,
                    "got": rate / 1e6,
                    "shift": (i * 0.618034) % 1 - 0.5,
                    "kept": "contract kept" if rate >= contract else "contract missed",
                }
                for i, rate in enumerate(rates)
            ]
    return made


def chart(data: list[dict[str, Any]], narrow: bool = False) -> alt.TopLevelMixin:
    """A panel a queue, beside or below one another: every run a dot, the contract as a bar."""
    colour = alt.Color(
        "kept:N", title=None, scale=alt.Scale(domain=["contract kept", "contract missed"], range=[IN, OUT])
    )
    panels = []
    for i, name in enumerate(QUEUES):
        base = alt.Chart({"values": [row for row in data if row["queue"] == name]})
        x = alt.X("contract:N", title="bought (kbit/s)", sort=None, axis=alt.Axis(labelAngle=0))
        labelled = narrow or i == 0
        axis = alt.Axis(title="got (Mbit/s)") if labelled else alt.Axis(title=None, labels=False, ticks=False)
        y = alt.Y("got:Q", axis=axis, scale=alt.Scale(domain=[0, 1.2]))
        shift = alt.XOffset("shift:Q", scale=alt.Scale(domain=[-1.2, 1.2]))
        dots = base.mark_circle(size=30, opacity=0.5).encode(x=x, y=y, xOffset=shift, color=colour)
        bought = base.mark_tick(color="#22303c", thickness=2, size=44).encode(x=x, y="max(bought):Q")
        panels.append(
            alt.layer(bought, dots).properties(
                title=name, width=260 if narrow else 210, height=170 if narrow else 220
            )
        )
    subtitle = [
        f"Every dot a run ({SEEDS} seeds); the bar is what was bought.",
        "Same TCP, same token buckets, three queue disciplines.",
    ]
    join = alt.vconcat if narrow else alt.hconcat
    drawn: alt.TopLevelMixin = join(*panels, spacing=18).properties(
        title=alt.Title(
            "Four flows bought different rates on one 3 Mbit/s link",
            subtitle=subtitle if narrow else " ".join(subtitle),
            subtitleColor=PALETTE[0],
            subtitlePadding=6,
        )
    )
    return drawn.configure_legend(orient="bottom") if narrow else drawn


if __name__ == "__main__":
    here, data = Path(__file__), rows()
    chart(data).save(here.with_suffix(".svg"))
    chart(data, narrow=True).save(here.with_name("contracts-narrow.svg"))
