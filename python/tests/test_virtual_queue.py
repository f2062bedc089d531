"""What the guide of virtual queues says, on fewer seeds."""

import runpy
from pathlib import Path

import pytest

import inprofile
from inprofile.studies.compare.schemes import Place, lengths, read_schemes

HERE = Path(__file__).parents[2] / "docs/guides/virtual-queues"


def test_at_the_links_rate_it_decides_as_a_real_queue_and_on_a_faster_link_it_delays_nothing() -> None:
    run = runpy.run_path(str(HERE / "run.py"))
    base = inprofile.load(HERE / "link.toml").with_(duration="30 s", seeds=4)
    found = {}
    for name, rate, queue in run["queues"]():
        changes = {"links.core.queue": queue, "links.core.rate": f"{rate:g} Mbit/s"}
        found[name] = run["measured"](base.with_(changes).run(), rate)
    real, same, fast = (found[n] for n in ("real queue", "virtual, 100 %", "virtual, link 5 times as fast"))
    assert same["delay_mean"].mean == pytest.approx(real["delay_mean"].mean, rel=0.05)
    assert same["loss_out"].mean == pytest.approx(real["loss_out"].mean, rel=0.1)
    assert fast["delay_p99"].mean < 1 < found["virtual, 90 %"]["delay_mean"].mean
    used = [found[n]["utilisation"].mean for n in ("virtual, 98 %", "virtual, 95 %", "virtual, 90 %")]
    assert used == sorted(used, reverse=True)
    assert all(u < share for u, share in zip(used, (98.1, 95.1, 90.1), strict=True))


@pytest.mark.parametrize("rate", ["64 kbit/s", "3 Mbit/s", "1 Gbit/s"])
def test_its_schemes_fit_a_link_of_any_rate_at_every_t_and_end_of_a_range(rate: str) -> None:
    scenario = inprofile.parse(inprofile.STARTER).with_({"links.bottleneck.rate": rate})
    place = Place.of(scenario)
    _, below = schemes = read_schemes(HERE / "schemes.toml")
    bits = inprofile.metrics.quantity.bits_per_second(rate)
    queue = next(v for k, v in below.values(place, 0.03).items() if k.endswith(".queue"))
    assert queue["virtual_rate"] == f"{0.95 * bits:.0f} bit/s"
    for scheme in schemes:
        for length in lengths(place):
            scenario.with_(scheme.values(place, length)).check()
        for setting in (s for s in scheme.settings if s.key.startswith("queue.")):
            for x in (setting.low, setting.high):
                scenario.with_(scheme.set({setting.key: x}).values(place, 0.03)).check()
