"""The page's server: whom it answers and what, the list, and what-if. The page itself: make test-page."""

import asyncio
import json
import shutil
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest

import inprofile
from inprofile import STARTER
from inprofile.cli import main
from inprofile.experiment.scenario import Scenario
from inprofile.run.results import Result
from inprofile.view import Folder, NoResults, PortInUse, export, listen
from inprofile.view.answers import unpack
from inprofile.view.knobs import knobs, levels
from inprofile.view.server import application
from inprofile.view.whatif import Superseded, TooMuch, WhatIf
from inprofile.view.why import _most_p_b

TOKEN = "let-me-in"  # noqa: S105 (nobody else has this server)
PORT = 8470
HOST = f"127.0.0.1:{PORT}"
SHORT = inprofile.parse(STARTER).with_({"duration": "6 s", "measure.from": "2 s"})
MUCH = {"duration": "4000 s", "links.bottleneck.rate": "90 Mbit/s"}
PAGE = {
    "index.html": b'<meta charset="utf-8"><link rel="stylesheet" crossorigin href="./page.css">'
    b'<script type="module" crossorigin src="./page.js"></script><body></body>',
    "page.js": b'document.title = "</script>";',
    "page.css": b"body {}",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("view")
    SHORT.run([1, 2], trace=True).write(place / "a" / "run")
    inprofile.sweep(SHORT, {"links.bottleneck.rate": ["2 Mbit/s", "3 Mbit/s"]}, place / "rates", seeds=2)
    SHORT.run([1]).write(place / "torn")
    (place / "torn" / "flows.parquet").unlink()
    SHORT.run([1]).write(place / "old")
    manifest = place / "old" / "inprofile.json"
    manifest.write_text(manifest.read_text().replace('"format": 3', '"format": 1'))
    (place / "strange").mkdir()
    # A manifest whose digest fits, but which is of another kind.
    about = json.loads((place / "a" / "run" / "inprofile.json").read_text())
    (place / "strange" / "inprofile.json").write_text(json.dumps({**about, "effective": []}))
    (place / "notes").mkdir()
    (place / "notes" / "readme.txt").write_text("nothing here")
    return place


class Server:
    """The application, asked without a network."""

    def __init__(self, folder: Path) -> None:
        self.app = application(Folder(folder), TOKEN, PORT, PAGE)

    def ask(
        self, path: str, body: object = None, below: str = f"/{TOKEN}", host: str = HOST, **headers: str
    ) -> tuple[int, bytes, dict[str, str]]:
        path, _, query = f"{below}{path}".partition("?")
        given = {"host": host, **headers}
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "GET" if body is None else "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "scheme": "http",
            "server": ("127.0.0.1", PORT),
            "headers": [(k.encode(), v.encode()) for k, v in given.items()],
        }
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            data = b"" if body is None else json.dumps(body).encode()
            return {"type": "http.request", "body": data, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        got = b"".join(m.get("body", b"") for m in sent)
        return sent[0]["status"], got, {k.decode(): v.decode() for k, v in sent[0]["headers"]}

    def get(self, what: str, **query: object) -> tuple[dict[str, Any], list[Any]]:
        status, body, _ = self.ask(f"/api/{what}?{urlencode(query)}")
        assert status == 200, body
        return unpack(body)


@pytest.fixture(scope="module")
def server(folder: Path) -> Server:
    return Server(folder)


def test_the_list_has_everything_and_says_what_is_broken(server: Server) -> None:
    entries = {e["id"]: e for e in server.get("index")[0]["entries"]}
    assert {id_: e["kind"] for id_, e in entries.items()} == {
        "a/run": "run",
        "old": "broken",
        "rates": "sweep",
        "strange": "broken",
        "torn": "broken",
    }
    assert entries["torn"]["problem"] == "not whole: flows.parquet missing"
    assert entries["old"]["problem"] == "old was written in another format: run the experiment again"
    assert entries["a/run"]["schemes"] == ["token_bucket", "rio"]
    assert entries["rates"]["runs"] == 4


def test_a_run_and_its_samples(server: Server, folder: Path) -> None:
    result = inprofile.read(folder / "a" / "run")
    about, _ = server.get("run", id="a/run")
    assert about["metrics"]["goodput"]["mean"] == result.summary()["goodput"].mean
    assert about["contracts"]["groups"][0]["name"] == "assured"
    found, arrays = server.get("series", id="a/run", seed=2)
    rows = [r for r in result.series.to_pylist() if r["seed"] == 2 and r["monitor"] == "assured.1"]
    line = next(ln for ln in found["lines"] if (ln["monitor"], ln["what"]) == ("assured.1", "cwnd"))
    wanted = [(r["t"], r["value"]) for r in rows if r["what"] == "cwnd"]
    assert list(zip(arrays[line["t"]].tolist(), arrays[line["v"]].tolist(), strict=True)) == wanted
    # Samples of one monitor share their times.
    assert len({ln["t"] for ln in found["lines"]}) == 1


def test_a_queue_comes_with_its_thresholds_target_and_limit(server: Server) -> None:
    found, _ = server.get("series", id="a/run", seed=1)
    made = {(one["monitor"], one["name"]): one["packets"] for one in found["levels"]}
    want = {"in min_th": 30, "in max_th": 45, "out min_th": 10, "out max_th": 30, "limit": 60}
    assert {name: n for (monitor, name), n in made.items() if monitor == "bottleneck"} == want
    queue = {"aqm": "pie", "limit": "50 packets", "target": "20 ms"}
    pie = SHORT.with_({"links.bottleneck.queue": queue}).check().effective
    # 3 Mbit/s: 20 ms are five packets of 1500 B, and fifty packets 200 ms.
    assert levels(pie)[:2] == [
        {"monitor": "bottleneck", "name": "limit", "packets": 50.0, "delay": pytest.approx(0.2)},
        {"monitor": "bottleneck", "name": "target", "packets": pytest.approx(5.0), "delay": 0.02},
    ]
    curve = {"min_th": "15 packets", "max_th": "45 packets", "max_p": 0.1}
    queue = {"aqm": "virtual_queue", "limit": "50 packets", "virtual_rate": "2.9 Mbit/s", "law": "red"}
    queue |= {"virtual_limit": "90 packets", "red": curve}
    virtual = levels(SHORT.with_({"links.bottleneck.queue": queue}).check().effective)
    assert [
        (one["name"], one["packets"], one["delay"]) for one in virtual if one["monitor"] == "bottleneck"
    ] == [
        ("max_th", 45.0, None),
        ("min_th", 15.0, None),
        ("virtual_limit", 90.0, None),
        ("limit", 50.0, pytest.approx(0.2)),
    ]
    classes = [
        {"name": "a", "aqm": "codel", "limit": "50 packets", "quantum": "3000 B"},
        {"name": "b", "aqm": "drop_tail", "limit": "20 packets", "quantum": "3000 B", "rate": "1 Mbit/s"},
    ]
    drr = {"links.bottleneck.queue": {"scheduler": "drr", "classes": classes}, "flows.assured.class": "a"}
    of = {(one["monitor"], one["name"]): one for one in levels(SHORT.with_(drr).check().effective)}
    assert of["bottleneck/a", "target"]["delay"] == 0.005
    assert of["bottleneck/b", "limit"]["delay"] == pytest.approx(20 * 1500 * 8 / 1e6)


def test_what_if_is_the_run_itself(server: Server) -> None:
    changes: dict[str, object] = {
        "links.bottleneck.queue.out.max_p": 0.5,
        "flows.assured.contract": ["200 kbit/s", "400 kbit/s", "600 kbit/s", "900 kbit/s"],
    }
    status, body, _ = server.ask("/api/whatif", {"id": "a/run", "seed": 2, "set": changes})
    assert status == 200, body
    found, arrays = unpack(body)
    wanted = SHORT.with_(changes).run([2])
    assert found["flows"]["throughput"] == wanted.flows["throughput"].to_pylist()
    assert found["flows"]["contract"][3] == 900e3
    queue = next(ln for ln in found["lines"] if (ln["monitor"], ln["what"]) == ("bottleneck", "packets"))
    rows = wanted.series.to_pylist()
    assert arrays[queue["v"]].tolist() == [
        r["value"] for r in rows if (r["monitor"], r["what"]) == ("bottleneck", "packets")
    ]
    # Nothing changed: what was stored.
    again = unpack(server.ask("/api/whatif", {"id": "a/run", "seed": 2, "set": {}})[1])[0]
    stored = server.get("series", id="a/run", seed=2)[0]
    assert again["flows"] == stored["flows"]
    # A setting of a sweep.
    setting = unpack(server.ask("/api/whatif", {"id": "rates", "setting": 1, "seed": 1, "set": {}})[1])[0]
    assert setting["flows"]["throughput"] == SHORT.run([1]).flows["throughput"].to_pylist()


def test_what_if_refuses_with_the_reason(server: Server) -> None:
    def refused(**changes: object) -> tuple[int, str]:
        status, body, _ = server.ask("/api/whatif", {"id": "a/run", "seed": 1, "set": changes})
        return status, json.loads(body)["error"]

    status, text = refused(**{"links.bottleneck.queue.out.min_th": "40 packets"})
    assert status == 422
    assert "min_th (40 packets) is not below max_th (30 packets)" in text
    status, text = refused(**MUCH)
    assert status == 422
    assert "at most 10,000,000 are while you wait" in text
    assert refused(**{"links.bottleneck.rate": None})[0] == 400
    assert server.ask("/api/whatif", {"id": "torn", "seed": 1, "set": {}})[0] == 404
    assert server.ask("/api/whatif", {"id": "rates", "setting": 9, "seed": 1, "set": {}})[0] == 404
    assert server.ask("/api/whatif", ["nonsense"])[0] == 400


def test_without_monitors_what_if_samples_by_itself() -> None:
    bare = inprofile.parse(STARTER[: STARTER.index("# Samples over time")]).with_(
        duration="3 s", measure__from="1 s"
    )
    result = WhatIf().run(bare, 1, {})
    assert bare.run([1]).series.num_rows == 0
    assert set(result.series["monitor"].to_pylist()) == {"bottleneck", *(f"assured.{i}" for i in range(4))}
    assert result.flows.equals(bare.run([1]).flows)


def test_a_newer_question_ends_the_older() -> None:
    runs = WhatIf()
    with runs._lock, pytest.raises(TooMuch):
        runs.run(SHORT, 1, MUCH)
    runs._newest += 1
    asked: list[Result] = []

    class Newer(dict[str, object]):
        """Another question comes while this one is being read."""

        def __bool__(self) -> bool:
            runs._newest += 1
            return True

    with pytest.raises(Superseded):
        asked.append(runs.run(SHORT, 1, Newer({"duration": "7 s"})))
    assert not asked


def test_only_who_has_the_token_gets_in(server: Server) -> None:
    assert server.ask("/")[:2] == (200, PAGE["index.html"])
    for below in ("", "/guess", f"/{TOKEN}x", f"/x/{TOKEN}", f"/?token={TOKEN}"):
        assert server.ask("/", below=below)[0] == 403
        assert server.ask("/api/index", below=below)[0] == 403
    assert server.ask("", below=f"/{TOKEN}")[0] == 403
    # A cookie of 127.0.0.1 goes to every port, another user's server among them: there is none.
    for path in ("/", "/page.js", "/api/index", "/api/no-such-thing"):
        assert "set-cookie" not in server.ask(path)[2]
    assert server.ask("/api/index", below="", cookie=f"inprofile-{PORT}={TOKEN}")[0] == 403
    # DNS rebinding, and a script of another site.
    assert server.ask("/api/index", host="evil.example")[0] == 421
    assert server.ask("/api/index", host=f"evil.example:{PORT}")[0] == 421
    assert server.ask("/api/whatif", {}, origin="http://evil.example")[0] == 403
    assert server.ask("/api/index", host=f"localhost:{PORT}", origin=f"http://localhost:{PORT}")[0] == 200
    policy = server.ask("/", below="")[2]["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'")
    assert "http" not in policy


@pytest.mark.parametrize("id_", ["../view", "/etc", "a", "..", "", "a/run/../run", "torn"])
def test_only_what_is_listed_is_read(server: Server, id_: str) -> None:
    status, body, _ = server.ask(f"/api/run?{urlencode({'id': id_})}")
    assert status == 404, body


def test_no_other_file_is_served(server: Server) -> None:
    for path in ("/../server.py", "/%2e%2e/server.py", "/page.js.map", "/api/", "/api/nothing"):
        assert server.ask(path)[0] == 404


def test_sliders_are_keys_that_can_be_set() -> None:
    effective = SHORT.check().effective
    found = knobs(effective)
    names = [(k.key, k.index) for k in found]
    assert ("links.bottleneck.queue.out.min_th", None) in names
    assert ("flows.assured.contract", 3) in names
    assert len(set(names)) == len(names)
    for knob in found:
        text: object = f"{knob.value} {knob.unit}" if knob.unit else knob.value
        if knob.index is not None:
            text = [*knob.others[: knob.index], str(text), *knob.others[knob.index + 1 :]]
        elif knob.whole and not knob.unit:
            text = int(knob.value)
        # What a slider shows at the start is what the experiment has.
        assert SHORT.with_({knob.key: text}).canonical == SHORT.canonical, knob
        assert knob.least <= knob.value <= knob.most


def test_a_file_to_send(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "sent.html"
    left_out = export(Folder(folder), file, PAGE)
    text = file.read_text()
    assert left_out == []
    assert "script-src 'sha256-" in text
    assert "http://" not in text
    assert "https://" not in text
    assert "<\\/script" in text
    data = json.loads(text.split('id="offline">')[1].split("</script>")[0])
    assert {path.split("?")[0] for path in data["answers"]} == {
        "index",
        "run",
        "flows",
        "explain",
        "series",
        "sweep",
        "curve",
        "means",
    }
    assert "series?id=a%2Frun&seed=2" in data["answers"]


def test_refusals_of_the_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*arguments: str) -> str:
        with pytest.raises(SystemExit) as left:
            main(["view", *arguments])
        assert left.value.code == 2
        return capsys.readouterr().err

    assert "there is no such folder" in refused(str(tmp_path / "gone"))
    assert "holds no results: give the folder" in refused(str(folder / "notes"))
    assert "is a file, not a folder" in refused(str(folder / "notes" / "readme.txt"))
    with listen(0) as taken:
        port = taken.getsockname()[1]
        assert f"port {port}: is in use: give another with --port" in refused(
            str(folder), "--port", str(port)
        )


def test_ports_and_folders(folder: Path) -> None:
    with listen(0) as made:
        assert made.getsockname()[0] == "127.0.0.1"
        assert made.family == socket.AF_INET
        with pytest.raises(PortInUse):
            listen(made.getsockname()[1])
    with pytest.raises(NoResults):
        Folder(folder / "notes")
    assert [e.id for e in Folder(folder / "rates").entries()] == ["."]


def test_why_a_packet_was_dropped(server: Server, folder: Path) -> None:
    """What is said to save a packet is tried on the law itself, for every early drop of a run."""
    found, _ = server.get("packets", id="a/run", seed=1, verdict="drop", cause="early")
    rows = [r for r in inprofile.read(folder / "a" / "run").verdicts.to_pylist() if r["seed"] == 1]
    assert found["total"] == sum(r["cause"] == "early" for r in rows) > 5
    assert found["all"] == len(rows)
    tried = 0
    for row in found["rows"]:
        way, _ = server.get("packet", id="a/run", seed=1, packet=row["packet"])
        last = way["steps"][-1]
        assert (last["verdict"], last["cause"]) == ("drop", "early")
        why = json.loads(row["why"])
        if "u" not in why:
            assert why["p_a"] >= 1
            assert "for certain" in last["what"]
            continue
        most = _most_p_b(why["p_a"], why["p_b"], why["count"], why["u"])
        assert most is not None
        assert most < why["p_b"]
        # Floyd and Jacobson 1993, Fig. 2: dropped where u < p_b / (1 − count·p_b).
        for p_b, dropped in ((most * (1 - 1e-9), False), (most * (1 + 1e-9), True)):
            assert (why["u"] < p_b / (1 - why["count"] * p_b)) == dropped
        own = next(text for text in last["otherwise"] if "max_p of" in text)
        assert own.startswith("OUT's" if way["steps"][0]["verdict"] == "out" else "IN's")
        tried += 1
    assert tried > 5


def test_packets_are_filtered(server: Server) -> None:
    every, _ = server.get("packets", id="a/run", seed=1)
    assert {r["verdict"] for r in every["rows"]} == {"drop"}
    some, _ = server.get("packets", id="a/run", seed=1, flow="assured.2", point="assured.2", verdict="out")
    assert {(r["flow"], r["point"], r["verdict"]) for r in some["rows"]} == {
        ("assured.2", "assured.2", "out")
    }
    late, _ = server.get(
        "packets", id="a/run", seed=1, verdict="admit", **{"from": 3, "to": 3.5, "offset": 10}
    )
    assert all(3 <= r["time"] <= 3.5 for r in late["rows"])
    assert late["offset"] == 10
    # Without a trace the run is made again, with every verdict.
    again, _ = server.get("packets", id="rates", setting=1, seed=1)
    assert again["all"] == every["all"]
    assert again["rows"] == every["rows"]
    assert server.ask("/api/packet?id=a/run&seed=1&packet=99999999")[0] == 400


def test_a_sweep_and_its_curves(server: Server, folder: Path) -> None:
    found, arrays = server.get("sweep", id="rates")
    wanted = inprofile.read_sweep(folder / "rates")
    assert found["settings"] == len(wanted)
    assert arrays[found["axes"][0]["values"]].tolist() == [2e6, 3e6]
    assert (arrays[found["setting"]].tolist(), arrays[found["seed"]].tolist()) == ([0, 0, 1, 1], [1, 2, 1, 2])
    metrics = {m["name"]: arrays[m["values"]] for m in found["metrics"]}
    assert metrics["goodput"][2:].tolist() == list(wanted[1].metrics["goodput"].values)
    curve, figures = server.get("curve", id="rates", metric="goodput")
    e = wanted[1].metrics["goodput"].estimate
    assert e.ci95 is not None
    assert [figures[curve[k]][1] for k in ("mean", "lo", "hi", "n")] == [e.mean, *e.ci95, e.n]
    table, figures = server.get("means", id="rates")
    made = {c["metric"]: [figures[c[k]][1] for k in ("mean", "lo", "hi", "n")] for c in table["curves"]}
    assert made["goodput"] == [e.mean, *e.ci95, e.n]
    assert list(made)[:2] == ["contracts_kept", "assurance_worst"]
    total = SHORT.run([1, 2]).contracts.total
    assert metrics["contracts_kept"][2:].mean() == pytest.approx(total.kept.mean)
    assert metrics["assurance_worst"][2:].min() == pytest.approx(total.worst)


def test_what_is_left_of_a_torn_sweep_is_shown(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "rates", tmp_path / "rates")
    part = next((tmp_path / "rates" / "metrics").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:100])
    found, arrays = Server(tmp_path).get("sweep", id="rates")
    assert found["problems"][0].startswith("metrics/part-00000.parquet cannot be read")
    assert (found["metrics"], arrays[found["seed"]].tolist()) == ([], [])
    assert found["settings"] == 2


def test_an_interrupted_sweep_with_until_is_not_shown_as_whole(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "rates", tmp_path / "rates")
    ledger = tmp_path / "rates" / "ledger.jsonl"
    entry = json.loads(ledger.read_text())
    # One of both settings is in a part.
    ledger.write_text(json.dumps({**entry, "runs": entry["runs"][:1]}) + "\n")
    head = tmp_path / "rates" / "sweep.json"
    head.write_text(json.dumps({**json.loads(head.read_text()), "until": ["goodput=2 %"]}))
    (listed,) = Folder(tmp_path).entries()
    assert listed.problem.startswith(
        "1 of 2 settings (2 runs) are in its tables: the command that began it goes on"
    )
    assert Folder(folder / "rates").entries()[0].problem == ""


def test_results_keep_their_text(folder: Path) -> None:
    back = inprofile.read(folder / "a" / "run").provenance
    assert Scenario.again(back).canonical == SHORT.canonical
    assert np.array_equal(back.seeds, [1, 2])
