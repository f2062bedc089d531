"""Checks what a Prometheus and a Grafana are given, against a router and a Prometheus that run.

The page passes `promtool check metrics`; the rules load, and fire on what alerts_test.yml has; every
expression of rules and dashboard is answered by a Prometheus that scrapes the router, and names only metrics
that the page has; the dashboard is what Grafana's import takes: see `dashboard_faults`. As root: it makes a
network namespace, gone with the processes in it.

    packaging/monitoring/check.py target/debug/inprofiled
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PAGE = "http://127.0.0.1:9474/metrics"
PROMETHEUS = "127.0.0.1:9099"
CONFIG = """\
inside = "lan0"
outside = "wan0"
fix_offloads = true
[control]
socket = "{folder}/control.sock"
[metrics]
listen = "127.0.0.1:9474"
customers = 1
[upstream]
rate = "10 Mbit/s"
[upstream.queue]
aqm = "rio"
limit = "100 packets"
in = {{ min_th = "45 packets", max_th = "60 packets", max_p = 0.02 }}
out = {{ min_th = "20 packets", max_th = "40 packets", max_p = 0.05 }}
[[upstream.customers]]
name = "alice"
prefix = "10.0.1.0/24"
contract = "4 Mbit/s"
marker = {{ kind = "token_bucket", depth = "30 kB" }}
[[upstream.customers]]
name = "bob"
prefix = "10.0.2.0/24"
contract = "2 Mbit/s"
marker = {{ kind = "token_bucket", depth = "30 kB" }}
"""
SCRAPE = """\
global: {{ scrape_interval: 1s }}
rule_files: ["{rules}"]
scrape_configs: [{{ job_name: inprofiled, static_configs: [{{ targets: ["127.0.0.1:9474"] }}] }}]
"""
METRIC = re.compile(r"\binprofiled_\w+")
VARIABLES = {
    "$__rate_interval": "1m",
    "$__range": "5m",
    "$direction": ".*",
    "$customer": ".*",
    "$instance": ".*",
}


def fetch(url: str) -> str:
    """The text at an address of this namespace."""
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
        text: str = answer.read().decode()
        return text


def wait_for(url: str) -> str:
    """The same, once somebody answers there."""
    until = time.monotonic() + 30
    while True:
        try:
            return fetch(url)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.2)


def panels(dashboard: dict[str, Any]) -> list[dict[str, Any]]:
    """All panels that show something."""
    return [p for p in dashboard["panels"] if p["type"] != "row"]


def expressions(dashboard: dict[str, Any]) -> list[str]:
    """The queries of its panels, with Grafana's variables filled in."""
    found = []
    for panel in panels(dashboard):
        for target in panel["targets"]:
            text = target["expr"]
            for name, value in VARIABLES.items():
                text = text.replace(name, value)
            found.append(text)
    return found


def dashboard_faults(dashboard: dict[str, Any]) -> list[str]:
    """Panels that Grafana would refuse or show wrongly, by its dashboard JSON model (schemaVersion 39)."""
    faults = []
    wanted = {
        "title": str,
        "uid": str,
        "schemaVersion": int,
        "panels": list,
        "templating": dict,
        "time": dict,
        "tags": list,
    }
    faults += [
        f"{key} is missing or no {kind.__name__}"
        for key, kind in wanted.items()
        if not isinstance(dashboard.get(key), kind)
    ]
    if faults:
        return faults
    if dashboard.get("id") is not None:
        faults.append("id is a database's own: null")
    ids = [p.get("id") for p in dashboard["panels"]]
    if len(set(ids)) != len(ids):
        faults.append(f"panels share an id: {ids}")
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        name = panel.get("title", "?")
        place = panel.get("gridPos", {})
        if set(place) != {"h", "w", "x", "y"} or place["x"] + place["w"] > 24:
            faults.append(f"{name}: gridPos {place}")
            continue
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        if cells & taken:
            faults.append(f"{name}: lies over another panel")
        taken |= cells
        if panel["type"] == "row":
            continue
        if panel["type"] not in {"timeseries", "stat", "table", "bargauge", "heatmap"}:
            faults.append(f"{name}: type {panel['type']}")
        if "unit" not in panel.get("fieldConfig", {}).get("defaults", {}):
            faults.append(f"{name}: no unit")
        refs = [t.get("refId") for t in panel.get("targets", [])]
        if not refs or len(set(refs)) != len(refs):
            faults.append(f"{name}: refIds {refs}")
        if panel.get("datasource", {}).get("uid") != "${datasource}":
            faults.append(f"{name}: its data source is not the variable")
    return faults


def inside(program: str) -> int:
    """All of it, in a network namespace of its own."""

    def run(words: str) -> None:
        subprocess.run(words.split(), check=True)

    run("ip link set lo up")
    for one, other in (("h0", "lan0"), ("h1", "wan0")):
        run(f"ip link add {one} type veth peer name {other}")
        for end in (one, other):
            run(f"ip link set {end} up")
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        config, scrape = Path(folder, "router.toml"), Path(folder, "prometheus.yml")
        config.write_text(CONFIG.format(folder=folder))
        scrape.write_text(SCRAPE.format(rules=HERE / "alerts.yml"))
        with Path(folder, "log").open("w") as log:
            started = [subprocess.Popen([program, "run", str(config)], stderr=log)]
            store = [f"--storage.tsdb.path={folder}/data", f"--web.listen-address={PROMETHEUS}"]
            started.append(subprocess.Popen(["prometheus", f"--config.file={scrape}", *store], stderr=log))
        try:
            page = wait_for(PAGE)
            faults += checks(page)
        finally:
            for process in started:
                process.terminate()
            for process in started:
                process.wait()
    for fault in faults:
        print(f"FAIL {fault}")
    return 1 if faults else 0


def checks(page: str) -> list[str]:
    """The faults."""
    faults = []

    def passes(what: str, words: list[str], text: str | None = None) -> None:
        ran = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
        told = (ran.stdout + ran.stderr).strip()
        if ran.returncode != 0 or (text is not None and told):
            faults.append(f"{what}: {told}")
        else:
            print(f"ok   {what}")

    passes("the page, by promtool check metrics", ["promtool", "check", "metrics"], page)
    passes("the rules, by promtool check rules", ["promtool", "check", "rules", str(HERE / "alerts.yml")])
    passes(
        "what they fire on, by promtool test rules",
        ["promtool", "test", "rules", str(HERE / "alerts_test.yml")],
    )
    dashboard = json.loads((HERE / "dashboard.json").read_text())
    told = dashboard_faults(dashboard)
    faults += [f"the dashboard: {fault}" for fault in told]
    if not told:
        print(f"ok   the dashboard: {len(panels(dashboard))} panels, as Grafana's JSON model has them")
    rules = json.loads(wait_for(f"http://{PROMETHEUS}/api/v1/rules"))["data"]["groups"]
    asked = [rule["query"] for group in rules for rule in group["rules"]] + expressions(dashboard)
    families = set(re.findall(r"^# TYPE (\S+)", page, re.MULTILINE))
    known = families | {f + end for f in families for end in ("_bucket", "_sum", "_count")}
    until = time.monotonic() + 30
    while not answer("inprofiled_uptime_seconds") and time.monotonic() < until:
        time.sleep(0.5)
    time.sleep(3)
    for query in asked:
        missing = set(METRIC.findall(query)) - known
        if missing:
            faults.append(f"{', '.join(sorted(missing))}: not on the page, in {query}")
        answer(query)
    print(f"ok   {len(asked)} expressions, answered by a Prometheus that scrapes the router")
    empty = [query for query in expressions(dashboard) if not answer(query)]
    faults += [f"shows nothing: {query}" for query in empty]
    firing = json.loads(fetch(f"http://{PROMETHEUS}/api/v1/alerts"))["data"]["alerts"]
    faults += [f"{a['labels']['alertname']} fires at a router that is well" for a in firing]
    return faults


def answer(query: str) -> list[Any]:
    """Prometheus's answer; an invalid query is an error."""
    words = urllib.parse.urlencode({"query": query})
    result: list[Any] = json.loads(fetch(f"http://{PROMETHEUS}/api/v1/query?{words}"))["data"]["result"]
    return result


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--inside":
        sys.exit(inside(sys.argv[2]))
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    words = ["unshare", "-n", sys.executable, str(Path(__file__).resolve()), "--inside", sys.argv[1]]
    sys.exit(subprocess.run(words, check=False).returncode)
