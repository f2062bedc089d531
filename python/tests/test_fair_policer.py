"""What the page of markers says of the fair policer, on fewer seeds and a shorter run."""

import inprofile

FLOW = """
[[flows]]
name = "{0}"
count = 4
from = "H*"
join = {{ node = "r", rate = "1 Gbit/s" }}
to = "s"
rtt = "40 ms"
start = "uniform 0..1 s"
tcp = {{ congestion = "{0}" }}
"""
LINK = """
title = "Two kinds of senders through one policer"
duration = "30 s"
measure = { from = "10 s" }
tcp = { profile = "linux" }
[[links]]
name = "b"
from = "r"
to = "s"
rate = "100 Mbit/s"
delay = "5 ms"
queue = { aqm = "drop_tail", limit = "500 packets" }
[[edges]]
node = "r"
"""


def shares(marker: str) -> tuple[dict[str, float], float]:
    """Mean goodput of a flow of either kind in Mbit/s, and the mean queueing delay in s."""
    flows = FLOW.format("cubic") + FLOW.format("bbr")
    result = inprofile.parse(f"{LINK}marker = {{ {marker} }}\n{flows}").run(range(1, 3))
    got: dict[str, float] = {}
    for row in result.rows("flows"):
        group = str(row.keys["group"])
        got[group] = got.get(group, 0.0) + row.figures["goodput"].mean / 4e6
    return got, result.summary()["delay_mean"].mean


def test_bbr_starves_cubic_at_a_token_bucket_and_not_at_a_fair_policer() -> None:
    bucket, _ = shares('kind = "token_bucket", rate = "20 Mbit/s", depth = "100 kB", action = "drop"')
    fair, delay = shares('kind = "fair_policer", rate = "20 Mbit/s", burst = "100 kB"')
    ample, _ = shares('kind = "fair_policer", rate = "20 Mbit/s", burst = "400 kB"')
    assert bucket["bbr"] > 3 * bucket["cubic"]
    assert fair["bbr"] < 1.25 * fair["cubic"]
    assert abs(ample["bbr"] - ample["cubic"]) < 0.05
    assert delay < 2e-4, "it has no queue"
    assert sum(fair.values()) * 4 > 19
