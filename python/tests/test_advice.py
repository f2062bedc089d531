"""The papers' advice: sentences that the committed figures bear out, for who has not read the paper."""

from __future__ import annotations

import json
import re
import runpy
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import inprofile
from inprofile import papers
from inprofile.experiment.scenario import Scenario, load
from inprofile.papers import Paper, rerun
from inprofile.papers.advice import HEADINGS, TODAY, advised, committed, of_today, read, sentences
from inprofile.studies.compare import advice as comparison
from inprofile.studies.compare.brief import CAPTION, brief, markdown
from inprofile.studies.compare.measure import measure
from inprofile.studies.compare.run import plan
from inprofile.studies.compare.schemes import Place, choose

NAMES = papers.names()
DOCS = Path(__file__).parents[2] / "docs"


def said(about: Mapping[str, Any]) -> list[str]:
    """The sentences' names: the four, and the fifth where there is one."""
    return [*HEADINGS, *([TODAY] if TODAY in about else [])]


@pytest.mark.parametrize("name", NAMES)
def test_the_committed_figures_bear_every_sentence_out(name: str) -> None:
    paper = papers.load(name)
    found = committed(paper)
    assert found is not None, "docs/renew.py copies them from a folder of reports"
    about, figures = found
    made = sentences(paper, about, figures)
    assert [sentence.id for sentence in made] == said(about), "reproduce --senders has the fifth's figures"
    for sentence in made:
        assert not sentence.unmet, (sentence.id, sentence.unmet)
        assert len(sentence.text.split()) <= 60, sentence.id


@pytest.mark.parametrize("name", NAMES)
def test_no_sentence_needs_a_claims_code(name: str) -> None:
    paper = papers.load(name)
    about = read(paper)
    assert about is not None
    codes = "|".join(re.escape(claim.id) for claim in paper.claims)
    for text in (about["caption"], *(about[heading]["text"] for heading in said(about))):
        assert not re.search(rf"\b({codes})\b", text), text


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_that_a_sentence_gives_is_held_to_something(name: str) -> None:
    """Where a sentence compares, it says what must hold for it to be true."""
    about = read(papers.load(name))
    assert about is not None
    for heading in said(about):
        if "{" in about[heading]["text"]:
            assert about[heading].get("holds"), heading


@pytest.mark.parametrize("name", NAMES)
def test_settings_for_the_router_are_those_of_mechanisms_that_there_are(name: str) -> None:
    for paste in pastes(papers.load(name), "inprofiled"):
        up = tomllib.loads(paste["text"])["upstream"]
        known = {m.name: {p.name.split(".")[0] for p in m.parameters} for m in inprofile.mechanisms()}
        queue = up["queue"]
        assert queue.keys() - {"aqm", "limit"} <= known[queue["aqm"]]
        for customer in up.get("customers", ()):
            assert customer["marker"].keys() - {"kind"} <= known[customer["marker"]["kind"]]


def experiment(paper: Paper, of: Mapping[str, Any] | None = None) -> tuple[Scenario, dict[str, Any]]:
    """The experiment that is advised, as it is run: what sentences have figures of; or of a paste."""
    about = read(paper)
    assert about is not None
    cell = advised(paper, about if of is None or "experiment" not in of else of)
    [job] = [j for batch in paper.module("experiments").jobs(paper) for j in batch if j.cell == cell]
    made = load(paper.folder / job.file).with_(job.values)
    found: dict[str, Any] = json.loads(made.canonical)
    return made, found


#: The link whose queue flows meet first.
FIRST = ("bottleneck", "hop1")


def queue_of(found: Mapping[str, Any]) -> dict[str, Any]:
    """The queue that flows meet; what it only watches is no setting."""
    link = next((x for x in found["links"] if x["name"] in FIRST), found["links"][-1])
    queue: dict[str, Any] = link["ways"][0]["queue"]
    queue["aqm"]["with"].pop("watch", None)
    return {**queue, "rate": link["ways"][0]["rate"]}


def pastes(paper: Paper, word: str) -> list[Mapping[str, Any]]:
    """Those that have a word in their title: for which program they are."""
    about = read(paper)
    assert about is not None
    return [p for p in about.get("pastes", ()) if word in re.findall(r"\w+", p["title"])]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_pasted_is_the_experiment_that_the_sentences_are_of(name: str) -> None:
    """Every key of the queue and of the marker, those left out included: whose defaults differ are wrong."""
    paper = papers.load(name)
    for paste in pastes(paper, "inprofiled"):
        made, found = experiment(paper, paste)
        up = tomllib.loads(paste["text"])["upstream"]
        links = [i for i, x in enumerate(made.as_written["links"]) if x["name"] in FIRST]
        changes = {f"links.{links[0]}.queue": up["queue"], f"links.{links[0]}.rate": up["rate"]}
        if "aggregate" in up:
            # The edge's marker, and behind it a law that is written in another way: the runs are the same.
            changes["edges.R1.marker"] = up["aggregate"]
            short = {"duration": "20 s", "measure.from": "5 s", "measure.to": "20 s", "seeds": 2}
            one, other = (made.with_({**short, **more}).run() for more in ({}, changes))
            assert one.flows.equals(other.flows)
            assert sum(one.queues["dropped_out"].to_pylist()) > 0
            assert all(c["marker"] == {"kind": "colour", "colour": "in"} for c in up["customers"])
            continue
        queue = queue_of(json.loads(made.with_(changes).canonical))
        if queue["aqm"]["is"] == "red" and queue_of(found)["aqm"]["is"] == "rio":
            is_in_alone(made, changes, queue, found)
            continue
        assert queue == queue_of(found)
        for customer in up.get("customers", ()):
            put = customer["marker"]
            # A customer's marker is some flow's, with its contract where that has one.
            assert any(
                json.loads(made.with_({f"flows.{i}.marker": put}).canonical)["flows"][i] == flow
                for i, flow in enumerate(found["flows"])
                if (flow.get("marker") or {}).get("is") == put["kind"]
                and contract_of(customer) in bought(flow, contract_of(customer))
            )


def bought(flow: Mapping[str, Any], otherwise: int) -> list[int]:
    """The contracts of a group of flows; any where it has none."""
    found = flow.get("contract") or otherwise
    return found if isinstance(found, list) else [found]


def is_in_alone(
    made: Scenario, changes: Mapping[str, Any], queue: Mapping[str, Any], found: Mapping[str, Any]
) -> None:
    """RED with the curve of RIO's IN packets, where all are IN: the same law, by other random numbers."""
    assert not any(flow.get("marker") for flow in found["flows"])
    rio, red = queue_of(found)["aqm"]["with"], queue["aqm"]["with"]
    common = {key: value for key, value in rio.items() if key in red} | rio["in"]
    assert {key: red[key] for key in common} == common
    assert {"w_q", "variant", "wait", "gentle", "min_th", "max_th", "max_p"} <= common.keys()
    assert [queue[key] for key in ("limit", "rate")] == [queue_of(found)[key] for key in ("limit", "rate")]
    short = {"duration": "150 s", "measure.from": "50 s", "measure.to": "150 s", "seeds": 4}
    one, other = (measure(made.with_({**short, **more}).run()) for more in ({}, changes))
    assert other["delay"].mean() == pytest.approx(one["delay"].mean(), rel=0.02)


def contract_of(customer: Mapping[str, str]) -> int:
    number, unit = customer["contract"].split()
    return round(float(number) * {"kbit/s": 1e3, "Mbit/s": 1e6}[unit])


def queues_in(found: Any) -> list[Mapping[str, Any]]:
    """Every queue in what a paper's files say."""
    if isinstance(found, dict):
        return [*([found] if "aqm" in found else ()), *(q for x in found.values() for q in queues_in(x))]
    return [q for x in found for q in queues_in(x)] if isinstance(found, list) else []


def test_what_is_pasted_for_tc_is_a_queue_that_is_run() -> None:
    seen = set()
    for paper in map(papers.load, NAMES):
        run = [q for file in paper.folder.glob("*.toml") for q in queues_in(tomllib.loads(file.read_text()))]
        lines = [
            line
            for p in pastes(paper, "tc")
            for line in p["text"].splitlines()
            if line.startswith("tc qdisc")
        ]
        for kind, words in re.findall(r" ((?:fq_)?codel) (limit .*)", "\n".join(lines)):
            seen.add(kind)
            said = dict(zip(words.split()[:-1:2], words.split()[1:-1:2], strict=True))
            assert any(
                q["aqm"] == kind
                and q["limit"] == f"{said['limit']} packets"
                and q.get("target", "5 ms").replace(" ", "") == said["target"]
                and q.get("interval", "100 ms").replace(" ", "") == said["interval"]
                and words.endswith("noecn") == (not q.get("ecn", False))
                for q in run
            ), (paper.name, words)
    assert seen == {"codel", "fq_codel"}


@pytest.mark.parametrize("name", NAMES)
def test_as_good_is_said_where_an_interval_shows_it(name: str) -> None:
    about = read(papers.load(name))
    assert about is not None
    for heading in HEADINGS:
        said = about[heading]
        if re.search(r"as\s+well\b|changes\s+nothing|told\s+apart|nothing\s+to\s+mend", said["text"]):
            rules = [rule[0] for rule in said.get("holds", ())]
            assert any(rule.endswith(("_lo", "_hi")) for rule in rules), (heading, said["text"])


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_says_what_the_thing_does(name: str) -> None:
    """Before any figure, and with the words that it needs explained."""
    about = read(papers.load(name))
    assert about is not None
    opening = about["use"]["text"].split("{")[0]
    does = r"\b(drops|dropping|bounds|marks|sends|lets)\b"
    assert re.search(does, opening), opening
    # The papers' index has the first sentence alone.
    answer = r"\b(yes|no|only|seldom|hardly)\b"
    assert re.search(answer, about["use"]["text"].split(". ")[0], re.IGNORECASE)
    every = " ".join(about[heading]["text"] for heading in HEADINGS)
    if "Jain" in every:
        assert re.search(r"\(1: [^)]+\)", every)
    if re.search(r"\bOUT\b", every):
        assert "(OUT" in every or "OUT)" in every or "OUT packets only" in every
    assert not re.search(r"[αβ]|a little", every)


@pytest.mark.parametrize("file", ["README.md", "docs/index.md"])
def test_the_first_table_is_the_last_whole_comparison_in_brief(file: str) -> None:
    rows = brief(comparison.committed())
    assert 3 <= len(rows) <= 8
    text = (Path(__file__).parents[2] / file).read_text("utf-8")
    assert markdown(rows) in text, "python -m inprofile.studies.compare.brief prints it"


def test_of_schemes_that_keep_as_much_the_simplest_is_named_first() -> None:
    """Whatever best effort gets: RI+O leaves it more than RIO, and has a third curve to set."""

    def scheme(title: str, best_effort: float) -> comparison.Advised:
        figure = comparison.Figure(mean=1.0, ci95=None)
        left = comparison.Figure(mean=best_effort, ci95=None)
        return {"scheme": title, "value": figure, "less": figure, "best_effort": left}

    row = next(r for r in comparison.committed() if r["when"] == "Unequal contracts beside best effort")
    more, fewer, added = scheme("srTCM + WRED", 0.3), scheme("RIO", 0.2), scheme("RI+O", 0.4)
    [made] = brief([{**row, "use": [more], "costlier": [fewer, added]}])
    assert made.use == "RIO (or srTCM + WRED)"
    assert made.settings.startswith("RIO: a token bucket per flow")
    assert made.best_effort.startswith("20\N{NO-BREAK SPACE}% of the link")
    [alone] = brief([{**row, "use": [added], "costlier": []}])
    assert alone.use == "RI+O"


def test_what_adds_to_rio_keeps_no_more_where_rio_is_named() -> None:
    """As the caption says; and how much more of the link ARM leaves best effort, as its paper's page says."""
    more = []
    for row in comparison.committed():
        found = {a["scheme"]: a for a in (*row["use"], *row["costlier"])}
        if row["tcp"].startswith("Reno") or "RIO" not in found:
            continue
        for added in {"RI+O", "ARM"} & found.keys():
            assert found[added]["value"]["mean"] <= found["RIO"]["value"]["mean"] + 0.0005
        if "best_effort" in found["RIO"]:
            assert {"RI+O", "ARM"} <= found.keys()
            more.append(found["ARM"]["best_effort"]["mean"] - found["RIO"]["best_effort"]["mean"])
    assert (round(100 * min(more)), round(100 * max(more))) == (2, 7)
    assert "leaves best effort 2 to 7 % of the link more" in (DOCS / "papers" / "ard.md").read_text("utf-8")


def test_packets_wait_as_long_as_the_tables_caption_says() -> None:
    """T = 48 ms, on each of the comparison's experiments under each sender."""
    made, length = plan(quick=True, schemes=["tsw2cm-wred"]), 0.048
    waits = []
    for study in made.studies:
        assert length / study.place.packet_time == pytest.approx(40)
        result = study.scenario.with_(made.schemes[0].values(study.place, length)).run(seeds=study.seeds)
        waits.append(1e3 * measure(result)["delay"].mean())
    assert (round(min(waits), -1), round(max(waits) / 5) * 5) == (20, 45)
    assert "With T = 48 ms, on 10 Mbit/s 40 packets of 1,500 bytes, packets wait 20 to 45 ms" in CAPTION[0][1]


def test_t_and_buckets_do_what_is_said_below_the_table() -> None:
    """At corners of the guide's sweeps: the least use of the link, two packets a flow, a bucket for CUBIC."""
    swept = runpy.run_path(str(DOCS / "guides" / "contracts" / "settings.py"))
    scenario, links, cubic = swept["scenario"], swept["LINKS"], swept["CUBIC"]
    [wred, rio] = (choose([name])[0] for name in ("tsw2cm-wred", "rio"))

    def mean(what: str, base: Scenario, values: Mapping[str, object]) -> float:
        return float(measure(base.with_(values).run(seeds=3))[what].mean())

    slow = scenario(cubic, 180, links["40 Mbit/s, 20 flows"])
    assert mean("utilisation", slow, wred.values(Place.of(slow), 0.048)) > 0.985
    many = scenario(cubic, 20, links["10 Mbit/s, 80 flows"])
    left = [mean("best_effort", many, wred.values(Place.of(many), t)) for t in (0.024, 0.192)]
    assert [round(100 * x) for x in left] == [pytest.approx(3, abs=1), pytest.approx(25, abs=1)]
    few = scenario(
        cubic,
        60,
        {"flows.assured.count": 5, "flows.assured.contract": "1 Mbit/s", "flows.best-effort.count": 15},
    )
    behind = rio.values(Place.of(few), 0.048)
    assert mean("worst", few, {**behind, "flows.assured.marker.depth": "15 kB"}) == 1.0
    said = dict(CAPTION)["How to set it"]
    assert "with half a packet, CUBIC's best effort got 3 % of the link, with two 25 %" in said
    assert "in round trips at the contract's rate: two for CUBIC and BBR" in said


@pytest.mark.parametrize("name", [n for n in NAMES if TODAY in (read(papers.load(n)) or {})])
def test_what_is_advised_is_run_under_todays_senders(name: str) -> None:
    """The advised experiment itself and what it is compared with, under Linux's CUBIC, Reno and BBR."""
    paper = papers.load(name)
    about = read(paper)
    assert about is not None
    planned = rerun.plan(paper).advised
    assert {"linux", "reno", "bbr"} < planned.keys()
    cells = {trial: [job.cell for batch in t.batches for job in batch] for trial, t in planned.items()}
    assert all(found == cells["paper"] for found in cells.values())
    assert advised(paper, about) in cells["paper"]
    found = rerun.committed(paper)
    assert found is not None
    assert {s["id"] for s in found["advised"]["senders"]} == planned.keys()
    assert not found["advised"]["invalid"]
    # A figure may lack where none of its runs reaches what it is compared at: never the paper's own.
    rows = found["advised"]["rows"]
    assert all({"paper"} <= row["senders"].keys() <= planned.keys() for row in rows)
    assert 2 * sum(row["senders"].keys() == planned.keys() for row in rows) > len(rows)
    kept = committed(paper)
    assert kept is not None
    assert of_today(found).items() <= kept[1].items()
