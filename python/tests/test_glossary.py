"""The glossary defines every name that the program prints."""

import ast
import json
from pathlib import Path

import pytest
from markupsafe import escape

import inprofile
from inprofile.metrics.contracts import BY_RUN
from inprofile.metrics.glossary import entries, lookup
from inprofile.papers.claim import Verdict
from inprofile.run.storage import TABLES
from inprofile.studies.compare.measure import MEASURES
from inprofile.studies.reproduce.report.overview import write_overview
from inprofile.studies.suite.measure import TITLES

CURVE = '{ min_th = "5 packets", max_th = "15 packets", max_p = 0.1 }'
QUEUES = {
    "drop_tail": 'limit = "30 packets"',
    "red": f'limit = "30 packets", {CURVE.strip("{ }")}, ecn = true',
    "ared": 'limit = "30 packets"',
    "rio": f'limit = "30 packets", in = {CURVE}, out = {CURVE}',
    "rio_plus_out": f'limit = "30 packets", in = {CURVE}, out = {CURVE}, total = {CURVE}',
    "fdd_red": f'limit = "30 packets", {CURVE.strip("{ }")}',
    "dwred": 'limit = "30 packets"',
    "wred": f'limit = "30 packets", green = {CURVE}, yellow = {CURVE}, red = {CURVE}, green_ecn = {CURVE}',
    "choke": f'limit = "30 packets", {CURVE.strip("{ }")}',
    "virtual_queue": 'limit = "30 packets", virtual_rate = "900 kbit/s", virtual_limit = "30 packets"'
    f', law = "rio", rio = {{ in = {CURVE}, out = {CURVE} }}',
    "dsred": f'limit = "30 packets", green = {CURVE}, yellow = {CURVE}, red = {CURVE}',
}
MARKERS = {
    "token_bucket": 'depth = "4 packets"',
    "tsw2cm": "",
    "tsw3cm": 'ptr = "800 kbit/s"',
    "arm": 'tpr_max = "1 Mbit/s", bucket = "10 packets", t_rd = "5 packets"',
    "ard": 'tpr_max = "1 Mbit/s", bucket = "10 packets", t_rd = "5 packets"',
    "blind_drop": "p = 0.1",
    "probe": "",
    "every_nth": "n = 5",
    "fair_policer": 'burst = "4 packets"',
    "twam": "",
    "srtcm": 'cbs = "4 packets", ebs = "4 packets"',
    "trtcm": 'pir = "800 kbit/s", cbs = "4 packets", pbs = "4 packets"',
    "rfc4115": 'eir = "400 kbit/s", cbs = "4 packets", ebs = "4 packets"',
    "colour": 'colour = "red"',
}
AGGREGATE = ("arm", "ard", "twam")


def experiment(queue: str, marker: str) -> inprofile.Scenario:
    """Two TCP flows and a transfer over a full link, with monitors of all that can be watched."""
    kind = f'{{ kind = "{marker}", {MARKERS[marker]} }}'.replace(", }", " }")
    own, edge = ("", kind) if marker in AGGREGATE else (f"marker = {kind}", "")
    flow = 'from = "H*"\njoin = { node = "r", rate = "100 Mbit/s" }\nto = "s"\nrtt = "20 ms"'
    text = f"""
title = "glossary"
duration = "6 s"
measure = {{ every = "1 s" }}
tcp = {{ ecn = {"true" if queue == "red" else "false"} }}
[[links]]
name = "b"
from = "r"
to = "s"
rate = "1 Mbit/s"
delay = "1 ms"
queue = {{ aqm = "{queue}", {QUEUES.get(queue, 'limit = "30 packets"')} }}
[[flows]]
name = "t"
count = 2
{flow}
contract = "400 kbit/s"
{own}
[[flows]]
name = "f"
{flow}
traffic = {{ kind = "transfer", size = "20 packets" }}
[[monitors]]
queue = "b"
every = "1 s"
[[monitors]]
flows = "t"
every = "1 s"
"""
    if edge:
        text += f'[[edges]]\nnode = "r"\nmarker = {edge}\n[[monitors]]\nedge = "r"\nevery = "1 s"\n'
    return inprofile.parse(text)


def printed(result: inprofile.Result) -> set[str]:
    """Every name in a result's tables: columns, metrics, causes, verdicts, figures."""
    names = {column for table in TABLES for column in getattr(result, table).column_names}
    names |= set(result.metrics["name"].to_pylist()) | set(result.series["what"].to_pylist())
    names |= set(result.drops["cause"].to_pylist()) | set(result.verdicts["verdict"].to_pylist())
    for table, column in ((result.verdicts, "why"), (result.queues, "stats"), (result.markers, "stats")):
        for text in set(table[column].to_pylist()):
            figures = json.loads(text)
            names |= set(figures)
            for per_flow in figures["flows"].values() if isinstance(figures.get("flows"), dict) else ():
                names |= set(per_flow)
    return names


def known() -> set[str]:
    return {word for entry in entries() for word in entry.words}


def test_every_mechanism_is_asked_for_its_names() -> None:
    """A new mechanism that needs settings is given them in `QUEUES` or `MARKERS` above."""
    for mechanism in inprofile.mechanisms():
        needed = [p.name for p in mechanism.parameters if p.default is None]
        given = {"aqm": QUEUES, "marker": MARKERS}.get(mechanism.kind, {mechanism.name})
        assert mechanism.name in given or not needed, f"{mechanism.name} needs {needed}"


@pytest.mark.parametrize(
    ("queue", "marker"),
    [(m.name, "token_bucket") for m in inprofile.mechanisms() if m.kind == "aqm"]
    + [("drop_tail", m.name) for m in inprofile.mechanisms() if m.kind == "marker"],
)
def test_every_name_that_a_run_prints_is_defined(queue: str, marker: str) -> None:
    MARKERS.setdefault(marker, "")
    missing = printed(experiment(queue, marker).run(1, trace=True)) - known()
    assert not missing, f"docs/glossary.md defines no {', '.join(sorted(missing))}"


def test_every_metric_has_its_unit_point_and_header_rule() -> None:
    metrics = {entry.words[0]: entry for entry in entries() if entry.section == "Metrics"}
    pausing = {"links.b.pause": {"xoff": "6 kB", "xon": "4 kB"}}
    result = experiment("red", "token_bucket").with_(pausing).run(1)
    assert not printed(result) - known()
    found = result.summary()
    assert set(metrics) == set(found)
    of_contracts = {e.words[0]: e.cells["unit"] for e in entries() if e.section == "Metrics of contracts"}
    assert of_contracts == BY_RUN
    for name, metric in found.items():
        said = metrics[name].cells
        assert (said["unit"], said["counts"]) == (metric.unit, metric.header), name
        assert said["point"] == {"b": "measured link"}.get(metric.point, metric.point), name


def test_verdicts_and_measures_of_the_comparison_are_defined() -> None:
    words = {word.lower() for word in known()}
    assert {verdict.value for verdict in Verdict} <= words
    assert {measure.title.lower() for measure in MEASURES.values()} <= words


def headings() -> set[str]:
    """Every fixed heading of the command line's tables: what a list named `heading` or `heads` holds."""
    found = set()
    for file in Path(inprofile.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            names = [t.id for t in getattr(node, "targets", ()) if isinstance(t, ast.Name)]
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                names = [node.target.id]
            value = getattr(node, "value", None)
            if {"heading", "heads"} & set(names) and isinstance(value, ast.List):
                found |= {e.value for e in value.elts if isinstance(e, ast.Constant)}
    return found


def test_every_heading_of_a_printed_table_is_defined() -> None:
    words = {word.lower() for word in known()}
    parts = {part.strip("… ").lower() for text in headings() for part in text.split(",")}
    assert "tcp's share of the rate" in parts
    assert not (missing := parts - words - {""}), f"docs/glossary.md defines no {', '.join(sorted(missing))}"


def test_every_measure_of_a_suite_is_defined() -> None:
    words = {word.lower() for word in known()}
    missing = {title.lower() for title in TITLES.values()} - words
    assert not missing, f"docs/glossary.md defines no {', '.join(sorted(missing))}"


def test_no_word_is_defined_twice_in_a_section() -> None:
    seen = [(entry.section, word) for entry in entries() for word in entry.words]
    assert len(seen) == len(set(seen))
    assert all(entry.meaning for entry in entries())


def test_the_page_of_the_reports_has_every_word(tmp_path: Path) -> None:
    write_overview(tmp_path)
    page = (tmp_path / "glossary.html").read_text("utf-8")
    assert all(f"<code>{escape(word)}</code>" in page for word in known())
    assert 'href="glossary.html"' in (tmp_path / "index.html").read_text("utf-8")
    assert lookup("nothing of the kind") == []
