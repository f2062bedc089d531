"""The router's dashboard as a picture: `python docs/images/dashboard.py` draws it of simulated traffic.

Panels and their titles are those of packaging/monitoring/dashboard.json. The datapath decides as the
simulator does, so a simulated link has the series that Prometheus would scrape.
"""

import json
from collections import defaultdict
from pathlib import Path

import altair as alt
import vl_convert

import inprofile
from inprofile.charts.theme import themed

HERE = Path(__file__).parent
FILE = """
title = "Alice, Bob and the others"
duration = "90 s"
tcp = { profile = "linux" }
[[links]]
name = "uplink"
from = "edge"
to = "core"
rate = "10 Mbit/s"
delay = "2 ms"
[links.queue]
aqm = "rio"
limit = "100 packets"
in = { min_th = "45 packets", max_th = "60 packets", max_p = 0.02 }
out = { min_th = "20 packets", max_th = "40 packets", max_p = 0.05 }
"""
FLOWS = """
[[flows]]
name = "{name}"
count = {count}
from = "H*"
join = {{ node = "edge", rate = "100 Mbit/s" }}
to = "core"
rtt = "20..60 ms"
start = "{start}"
{more}
"""
BUCKET = 'contract = "{} Mbit/s"\nmarker = {{ kind = "token_bucket", depth = "30 kB" }}'
#: From 60 s on somebody sends more than TCP would: what drops look like.
UDP = 'traffic = { kind = "cbr", rate = "9 Mbit/s" }\nmarker = { kind = "colour", colour = "out" }'
GROUPS = [
    ("alice", 1, "0 s", BUCKET.format(4)),
    ("bob", 1, "15 s", BUCKET.format(2)),
    ("others", 4, "30 s", 'marker = { kind = "colour", colour = "out" }'),
    ("flood", 1, "60 s", UDP),
]
STEP = 3.0
BITS = 8 * 1500
PANELS = [
    "Sent, by colour",
    "Dropped, by cause",
    "In profile, dropped",
    "Offered",
    "Sent in profile",
    "Dropped",
]
UNITS = ["Mbit/s", "packets/s", "share", "Mbit/s", "Mbit/s", "packets/s"]


def series() -> dict[str, dict[tuple[float, str], float]]:
    """By panel: a value by time and series, from every verdict of a run."""
    text = FILE + "".join(FLOWS.format(name=n, count=c, start=s, more=m) for n, c, s, m in GROUPS)
    result = inprofile.parse(text).run(seeds=[1], trace=True)
    made: dict[str, dict[tuple[float, str], float]] = {name: defaultdict(float) for name in PANELS}
    came: dict[float, float] = defaultdict(float)
    colours: dict[tuple[str, int], str] = {}
    columns = (
        result.verdicts[c].to_pylist() for c in ("time_ps", "packet", "flow", "point", "verdict", "cause")
    )
    for time, packet, flow, point, verdict, cause in zip(*columns, strict=True):
        t, who = STEP * int(time / 1e12 / STEP), flow.partition(".")[0]
        rate = BITS / STEP / 1e6
        if point == flow:
            colours[flow, packet] = verdict
            if who in ("alice", "bob"):
                made["Offered"][t, who] += rate
        elif point == "uplink":
            colour, dropped = colours[flow, packet], verdict != "admit"
            came[t] += colour == "in"
            if dropped:
                made["Dropped, by cause"][t, cause] += 1 / STEP
                made["In profile, dropped"][t, "assured"] += colour == "in"
                if who in ("alice", "bob"):
                    made["Dropped"][t, who] += 1 / STEP
                continue
            made["Sent, by colour"][t, colour] += rate
            if who in ("alice", "bob") and colour == "in":
                made["Sent in profile"][t, who] += rate
    shares = made["In profile, dropped"]
    made["In profile, dropped"] = {(t, "assured"): shares[t, "assured"] / n for t, n in came.items() if n}
    return made


def panel(name: str, unit: str, rows: dict[tuple[float, str], float]) -> alt.Chart:
    """One panel: every series has a value at every time, 0 where nothing was counted."""
    names = sorted({series for _, series in rows})
    times = [STEP * i for i in range(int(90 / STEP))]
    values = [{"t": t, "series": n, "value": rows.get((t, n), 0.0)} for n in names for t in times]
    lines = alt.Chart(alt.Data(values=values)).mark_line(interpolate="step-after")
    return lines.encode(
        x=alt.X("t:Q", title="s"),
        y=alt.Y("value:Q", title=unit),
        color=alt.Color("series:N", title="", legend=alt.Legend(orient="bottom")),
    ).properties(width=230, height=110, title=name)


def main() -> None:
    """Draw the panels that say most, three in a row."""
    dashboard = json.loads((HERE / "../../packaging/monitoring/dashboard.json").read_text("utf-8"))
    if unknown := set(PANELS) - {p["title"] for p in dashboard["panels"]}:
        raise SystemExit(f"the dashboard has no panel {', '.join(sorted(unknown))}")
    made = series()
    drawn = [panel(name, unit, made[name]) for name, unit in zip(PANELS, UNITS, strict=True)]
    rows = [alt.hconcat(*drawn[i : i + 3]).resolve_scale(color="independent") for i in (0, 3)]
    chart = alt.vconcat(*rows).resolve_scale(color="independent")
    svg = vl_convert.vegalite_to_svg(themed(chart).to_dict())
    (HERE / "dashboard.svg").write_text(str(svg), "utf-8")


if __name__ == "__main__":
    main()
