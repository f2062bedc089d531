"""The transfers of `transfers.py`: what is sent over which link, and what the simulator makes of it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from inprofile import Result, load

SECONDS, FROM = 26, 6
"""Length of a run, and from when on it is measured."""

SEEDS = 10
"""Of each simulation."""

BURST = 30_280
"""Bytes that the link makes good after its timer was late: the guest's clock ticks every 10 ms."""

RTT = 40
"""Without queue, in ms."""

TICK = 10_000
"""Of the guest's clock, in us."""

PACKET = 1_514
"""On the wire, in bytes."""


@dataclass(frozen=True)
class Case:
    """One experiment."""

    name: str
    title: str
    controls: tuple[str, ...]
    """Linux's names, one a connection."""
    rate: int
    """Mbit/s."""
    linux: str
    """`tc`'s discipline."""
    ours: str
    """The queue's table."""


NAMES = {"reno": '"sack"', "cubic": '"cubic"', "dctcp": '"dctcp"'}
"""Linux's name of a control, and the experiment's."""


def drop_tail(bytes_: int) -> tuple[str, str]:
    """A queue of so many bytes."""
    return f"bfifo limit {bytes_}", f'aqm = "drop_tail", limit = "{bytes_} B"'


RAMP = (
    "red limit 1000000 min 15000 max 150000 avpkt 1000 burst 15 probability 1 bandwidth 10mbit ecn",
    'aqm = "red", limit = "1000000 B", min_th = "15000 B", max_th = "150000 B", max_p = 1.0, w_q = 0.5,'
    " gentle = false, ecn = true",
)
"""The average follows the queue within two packets (tc-red(8): w_q = 1/2)."""

CODEL = (
    "codel limit 1000 target 5ms interval 100ms noecn",
    'aqm = "codel", limit = "1000 packets", ecn = false, variant = "linux", mtu = "1514 B"',
)

CASES = (
    Case("dctcp", "DCTCP, RED from 15 kB on", ("dctcp", "dctcp"), 10, *RAMP),
    Case("cubic", "CUBIC, drop-tail", ("cubic", "cubic"), 10, *drop_tail(60_000)),
    Case("reno", "Reno, drop-tail", ("reno", "reno"), 10, *drop_tail(60_000)),
    Case("cubic-reno", "CUBIC beside Reno, drop-tail", ("cubic", "reno"), 10, *drop_tail(60_000)),
    Case("cubic-codel", "CUBIC, CoDel", ("cubic", "cubic"), 10, *CODEL),
    Case("cubic-many", "Ten CUBIC, 15 packets of buffer", ("cubic",) * 10, 4, *drop_tail(22_710)),
    Case("reno-many", "Ten Reno, 15 packets of buffer", ("reno",) * 10, 4, *drop_tail(22_710)),
)


@dataclass(frozen=True)
class Measured:
    """Of one run, or means over several."""

    goodput: float
    """Mbit/s."""
    queue: float
    """Mean time at the link in ms, transmission included: of Linux, by how much the smoothed round-trip time
    is above the least that any of the case's connections has seen."""
    share: float
    """Of the goodput, the first sender's."""
    again: float
    """Segments sent again, of those sent."""
    timeouts: float
    """Over the whole run."""


def experiment(case: Case, *, ticks: bool = False) -> str:
    """The same for the simulator. Ethernet's header and the timestamp option make packets of 1,514 B.

    With `ticks` the link serves as the guest's does: every 10 ms, at once, what it could have sent since.
    """
    flows = "".join(
        f"""
[[flows]]
name = "f{i}"
from = "H*"
join = {{ node = "L", rate = "1 Gbit/s" }}
to = "R"
rtt = "{RTT} ms"
start = "{100 * i} ms"
tcp = {{ congestion = {NAMES[control]} }}
"""
        for i, control in enumerate(case.controls)
    )
    rate = f'rate = "{case.rate} Mbit/s"'
    if ticks:
        rate = (
            f'rate = "{case.rate * TICK // 100} Mbit/s"\n'
            f'capacity = {{ steps = [{{ at = "100 us", rate = "1 bit/s" }}], repeat = "{TICK} us" }}'
        )
    return f"""
title = "{case.title}"
duration = "{SECONDS} s"
measure = {{ from = "{FROM} s", at = "link", distributions = true }}
seeds = {SEEDS}

[tcp]
profile = "linux"
segment = "1448 B"
header = "66 B"
window = "5000 packets"
jitter = "100 us"

[[links]]
name = "link"
from = "L"
to = "R"
{rate}
delay = "1 ms"
queue = {{ {case.ours} }}
{flows}"""


def ours(case: Case, *, ticks: bool = False) -> list[Measured]:
    """Each run of ours."""
    with tempfile.TemporaryDirectory(prefix="inprofile-transfers-") as name:
        file = Path(name) / f"{case.name}.toml"
        file.write_text(experiment(case, ticks=ticks), encoding="utf-8")
        scenario = load(file)
        return [one(scenario.run([seed], jobs=1), case.rate) for seed in range(1, SEEDS + 1)]


def one(result: Result, rate: int) -> Measured:
    """One run's figures, with a link of this many Mbit/s."""
    metrics = result.metrics.to_pydict()
    value = dict(zip(metrics["name"], metrics["value"], strict=True))
    flows = result.flows.to_pydict()
    goodput = flows["goodput"]
    sent = sum(flows["sent_in"]) + sum(flows["sent_out"])
    return Measured(
        sum(goodput) / 1e6,
        value["delay_mean"] * 1e3 + PACKET * 8e-3 / rate,
        goodput[0] / sum(goodput),
        value["retransmissions"] / sent,
        value["timeouts"],
    )
