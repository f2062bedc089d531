"""A running inprofiled on the page: what is made of its counters, and what is said if it can't be asked."""

from __future__ import annotations

import copy
import math
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from forked import RECORDED, StandIn
from inprofile.cli import main
from inprofile.view import RouterError, Watch, router
from inprofile.view.answers import unpack
from inprofile.view.control import _families

ALICE = "customer/upstream/alice"


def looked(place: Path, answers: list[Any], looks: int) -> Watch:
    """A watch on a stand-in, after so many looks."""
    StandIn(place, answers)
    watch = Watch(router(str(place)))
    for _ in range(looks):
        watch.look()
    return watch


def shown(watch: Watch, *rows: str) -> tuple[dict[str, Any], dict[str, dict[str, float]], list[Any]]:
    """An answer: its head, the present figures by row, its arrays. The watch is not started."""
    watch._thread = threading.current_thread()
    head, arrays = unpack(watch.answer(rows))
    values = arrays[head["now"]].reshape(-1, len(head["columns"]))
    figures = {
        f"{r['kind']}/{r['direction']}/{r['name']}": dict(
            zip(head["columns"], values[i].tolist(), strict=True)
        )
        for i, r in enumerate(head["rows"])
    }
    return head, figures, arrays


def test_rates_are_those_between_two_looks(tmp_path: Path) -> None:
    head, figures, arrays = shown(looked(tmp_path / "s", RECORDED, 2), ALICE)
    before, now = (answer["stats"] for answer in RECORDED[1:3])
    seconds = now["uptime"] - before["uptime"]
    for i, customer in enumerate(now["directions"][0]["customers"]):
        old = before["directions"][0]["customers"][i]
        got = figures[f"customer/upstream/{customer['name']}"]

        def grown(*keys: str, new: Any = customer, old: Any = old) -> float:
            for key in keys:
                new, old = new[key], old[key]
            return float(new - old)

        assert got["offered"] == pytest.approx(8 * grown("arrived_bytes") / seconds, rel=1e-6)
        for colour in ("in", "out", "red"):
            assert got[colour] == pytest.approx(8 * grown("sent_bytes", colour) / seconds, rel=1e-6)
        assert got["dropped_forced"] == pytest.approx(grown("dropped", "forced") / seconds, rel=1e-6)
        mean = grown("delay", "sum_s") / grown("delay", "packets")
        assert got["delay"] == pytest.approx(mean, rel=1e-6)
        assert got["p99"] == pytest.approx(customer["delay"]["p99_ms"] / 1e3, rel=1e-6)
        assert got["waiting"] == customer["waiting"]
    # No customer sends more than the link has, and carol, who keeps to her contract, loses nothing by chance.
    total = sum(figures["class/upstream/assured"][colour] for colour in ("in", "out", "red"))
    assert total == pytest.approx(4e6, rel=0.02)
    assert figures["customer/upstream/carol"]["dropped_early"] == 0
    (alice,) = head["history"]
    assert arrays[alice["series"]["in"]][-1] == pytest.approx(figures[ALICE]["in"])
    assert arrays[alice["series"]["tokens"]][-1] == pytest.approx(
        now["directions"][0]["markers"][0]["gauges"]["tokens"]
    )
    assert len(arrays[head["t"]]) == 2


def test_a_restart_is_no_negative_rate(tmp_path: Path) -> None:
    watch = looked(tmp_path / "s", [*RECORDED[:4], *RECORDED[:3]], 6)
    head, figures, arrays = shown(watch, ALICE)
    assert head["restarts"] == 1
    offered = arrays[head["history"][0]["series"]["offered"]]
    assert sum(math.isnan(x) for x in offered) == 2  # the pause, and a look without one before it
    assert all(math.isnan(x) or 1e6 < x < 5e6 for x in offered)
    assert figures[ALICE]["offered"] > 1e6


def test_a_router_that_stops_is_said_and_found_again(tmp_path: Path) -> None:
    place = tmp_path / "s"
    first = StandIn(place, RECORDED)
    watch = Watch(router(str(place)))
    watch.look()
    first.end()
    watch.look()
    watch.look()
    head, figures, _ = shown(watch)
    assert "nobody listens there; inprofiled has ended" in head["error"]
    assert figures[ALICE]["offered"] > 1e6
    StandIn(place, RECORDED[3:])
    watch.look()
    head, _, arrays = shown(watch, ALICE)
    assert head["error"] is None
    assert math.isnan(arrays[head["history"][0]["series"]["waiting"]][1])


def test_it_is_asked_while_somebody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[Watch.__module__], "UNWATCHED", 0.0)
    stand_in = StandIn(tmp_path / "s", RECORDED)
    watch = Watch(router(str(tmp_path / "s")), every=0.01)
    for asked in (2, 3):
        watch.answer([])
        thread = watch._thread
        if thread is not None:
            thread.join(10)
        assert stand_in.asked == asked
        assert watch._thread is None


def test_customers_come_and_go(tmp_path: Path) -> None:
    other = copy.deepcopy(RECORDED[1])
    customers = other["stats"]["directions"][0]["customers"]
    customers.insert(0, {**customers.pop(), "name": "dave", "arrived_bytes": 1000})
    head, figures, arrays = shown(looked(tmp_path / "s", [RECORDED[0], other], 1), ALICE)
    seconds = other["stats"]["uptime"] - RECORDED[0]["stats"]["uptime"]
    assert figures["customer/upstream/dave"]["offered"] == pytest.approx(8000 / seconds)
    assert "customer/upstream/carol" not in figures
    assert figures[ALICE]["offered"] < 5e6
    assert arrays[head["history"][0]["series"]["offered"]][0] == pytest.approx(figures[ALICE]["offered"])


def test_the_first_customer_of_a_reload_makes_no_peak_of_the_others(tmp_path: Path) -> None:
    before = copy.deepcopy(RECORDED[0])
    # A customer counts causes that a class has not.
    before["stats"]["directions"][0]["customers"] = []
    _, figures, _ = shown(looked(tmp_path / "s", [before, *RECORDED[1:3]], 1))
    _, usual, _ = shown(looked(tmp_path / "t", RECORDED[:3], 1))
    for row in ("class/upstream/assured", "class/upstream/control"):
        assert figures[row] == pytest.approx(usual[row], nan_ok=True)
    assert usual["class/upstream/assured"]["in"] > 0


def test_a_restart_that_nobody_saw_is_no_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(sys.modules[Watch.__module__].time, "monotonic", lambda: clock[0])
    StandIn(tmp_path / "s", RECORDED)
    watch = Watch(router(str(tmp_path / "s")))
    # Nobody looked for an hour; it was started anew meanwhile, and has run for longer than before.
    clock[0] = 3600.0
    watch.look()
    head, figures, _ = shown(watch)
    assert head["restarts"] == 1
    assert math.isnan(figures[ALICE]["offered"])
    clock[0] += RECORDED[2]["stats"]["uptime"] - RECORDED[1]["stats"]["uptime"]
    watch.look()
    assert shown(watch)[1][ALICE]["offered"] > 1e6


def test_an_answer_without_end_is_not_shown_by_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(METRICS.format(up=1, n=1000).encode())

        def log_message(self, *given: object) -> None:
            pass

    size = len(METRICS.format(up=1, n=1000).encode())
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for most, refused in ((size, False), (size - 1, True)):
            monkeypatch.setattr("inprofile.view.control.LARGEST", most)
            asked = router(f"http://127.0.0.1:{server.server_port}")
            if refused:
                with pytest.raises(RouterError, match="is another program there"):
                    asked.look()
            else:
                assert asked.look().uptime == 1
        server.shutdown()


def test_another_version_is_named(tmp_path: Path) -> None:
    def of(name: str, change: Any) -> list[Any]:
        answer = copy.deepcopy(RECORDED[0])
        change(answer["stats"])
        StandIn(tmp_path / name, [answer])
        return [str(tmp_path / name)]

    later = of("later", lambda stats: stats.update(version="99.0"))
    assert "is of version 99.0" in shown(Watch(router(later[0])))[0]["notes"][0]

    def lacks(stats: dict[str, Any]) -> None:
        stats.update(version="0.0.9")
        del stats["directions"][0]["customers"][0]["delay"]

    with pytest.raises(RouterError, match=r"lacks 'delay': it is version 0\.0\.9, and this is"):
        Watch(router(of("earlier", lacks)[0]))


def test_what_cannot_be_asked_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*arguments: str) -> str:
        with pytest.raises(SystemExit) as left:
            main(["view", *arguments])
        assert left.value.code == 2
        return capsys.readouterr().err

    (tmp_path / "file").write_text("")
    StandIn(tmp_path / "other", [b"HTTP/1.1 400 Bad Request\r\n"])
    StandIn(tmp_path / "no", [{"ok": False, "error": "user 1000 may not"}])
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(tmp_path / "left"))
    for given, said in {
        str(tmp_path / "gone"): "there is no such socket; is inprofiled running?",
        str(tmp_path / "file"): "is no socket: give the one that control.socket names",
        str(tmp_path / "left"): "nobody listens there",
        str(tmp_path / "other"): "does not answer as inprofiled does: 'HTTP/1.1 400 Bad Request",
        str(tmp_path / "no"): "user 1000 may not",
        str(tmp_path / ("x" * 200)): "no such socket",
        "http://192.0.2.7:9101/metrics": "is not on this machine, and metrics are not encrypted",
        "https://127.0.0.1:9101/metrics": "inprofiled serves metrics at http://",
        "http://127.0.0.1:1/metrics": "nobody listens there; is inprofiled running",
        "127.0.0.1:9101": "write http://127.0.0.1:9101",
    }.items():
        assert said in refused("--router", given), given
    assert "nothing to show: give DIR" in refused()
    assert "--export writes a folder of results" in refused("--router", "x", "--export", "y.html")


METRICS = """# HELP inprofiled_build_info 1; which version runs.
inprofiled_build_info{{version="0.1.0"}} 1
inprofiled_uptime_seconds {up}
inprofiled_bypass 1
inprofiled_failed 0
inprofiled_port_up{{interface="lan0",operstate="up"}} 1
inprofiled_accounts_add_up{{direction="upstream"}} 1
inprofiled_class_arrived_bytes_total{{direction="upstream",class="a",colour="in"}} {n}
inprofiled_class_sent_bytes_total{{direction="upstream",class="a",colour="in"}} {n}
inprofiled_class_sent_bytes_total{{direction="upstream",class="a",colour="out"}} 0
inprofiled_class_sent_bytes_total{{direction="upstream",class="a",colour="red"}} 0
inprofiled_class_dropped_packets_total{{direction="upstream",class="a",colour="in",cause="early"}} 1
inprofiled_class_dropped_packets_total{{direction="upstream",class="a",colour="out",cause="early"}} 2
inprofiled_class_marked_packets_total{{direction="upstream",class="a",colour="in"}} 0
inprofiled_class_queue_packets{{direction="upstream",class="a",colour="in"}} 3
inprofiled_class_queue_packets{{direction="upstream",class="a",colour="out"}} 4
inprofiled_class_state{{direction="upstream",class="a",variable="avg"}} 6.5
inprofiled_customer_arrived_bytes_total{{direction="upstream",customer="(others)"}} {n}
inprofiled_customer_queue_packets{{direction="upstream",customer="(others)"}} 7
inprofiled_customer_sent_bytes_total{{direction="upstream",customer="(others)",colour="in"}} {n}
inprofiled_customer_sent_bytes_total{{direction="upstream",customer="(others)",colour="out"}} 0
inprofiled_customer_sent_bytes_total{{direction="upstream",customer="(others)",colour="red"}} 0
inprofiled_customer_dropped_packets_total{{direction="upstream",customer="(others)",cause="early"}} 3
inprofiled_customer_delay_seconds{{direction="upstream",customer="(others)",quantile="0.99"}} 0.25
inprofiled_customer_delay_seconds_sum{{direction="upstream",customer="(others)"}} {up}
inprofiled_customer_delay_seconds_count{{direction="upstream",customer="(others)"}} {n}
"""


def test_metrics_show_the_same(tmp_path: Path) -> None:
    pages = [METRICS.format(up=1, n=1000), METRICS.format(up=3, n=6000)]

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/metrics" else 404)
            self.end_headers()
            self.wfile.write(pages.pop(0).encode())

        def log_message(self, *given: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        watch = Watch(router(f"http://127.0.0.1:{server.server_port}"))
        watch.look()
        server.shutdown()
    head, figures, _ = shown(watch)
    assert (head["mode"], head["ports"]) == ("bypass", [["lan0", "up"]])
    others = figures["customer/upstream/(others)"]
    assert (others["offered"], others["in"], others["waiting"]) == (20e3, 20e3, 7)
    assert others["delay"] == pytest.approx(2 / 5000)
    assert others["p99"] == 0.25
    assert figures["class/upstream/a"]["waiting"] == 7
    assert _families('inprofiled_x{name="a\\"b\\\\n,}",k="c"} 1\n') == {
        "x": [({"name": 'a"b\\n,}', "k": "c"}, 1.0)]
    }
