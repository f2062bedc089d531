"""The page of a reproduced paper: whole, offline, and of one mind with its data."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

import inprofile
import papers_synthetic as synthetic
from inprofile import papers
from inprofile.charts.curves import curve, frontier, lines
from inprofile.charts.page import write_figures
from inprofile.papers.advice import HEADINGS
from inprofile.papers.claim import Verdict
from inprofile.papers.judge import judge
from inprofile.papers.report import Report
from inprofile.studies.reproduce import plan
from inprofile.studies.reproduce.report import render, report_json, write, write_overview
from inprofile.studies.reproduce.report.atlas import too_few_seeds
from inprofile.studies.reproduce.report.data import holds_where, measures_csv

SETUPS = [s["id"] for s in papers.load("ard").setups]
#: A14's runs are those of a sweep, which these reports have not.
CLAIMS = [claim.id for claim in papers.load("ard").claims if claim.id != "A14"]


class Page(HTMLParser):
    """Elements with their attributes, and the text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._raw = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._raw = tag in ("script", "style")

    def handle_endtag(self, tag: str) -> None:
        self._raw = False

    def handle_data(self, data: str) -> None:
        if not self._raw:
            self.words.append(data)

    @property
    def ids(self) -> list[str]:
        return [a["id"] for _, a in self.elements if a.get("id")]  # type: ignore[misc]


@pytest.fixture(scope="module")
def html() -> str:
    return render(synthetic.report(drops_core=0.0, fi=0.8))


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def test_it_loads_nothing(html: str, page: Page) -> None:
    for tag, attributes in page.elements:
        for name in ("src", "href", "action", "data", "poster", "srcset"):
            value = attributes.get(name) or ""
            beside = value in ("../index.html", "../glossary.html", "experiment.toml")
            assert value.startswith(("#", "data:")) or beside or not value, (tag, name, value)
    # The library that draws the charts has addresses in its text; the page around it has none.
    bundle = max(re.findall(r"<script>(.*?)</script>", html, re.S), key=len)
    rest = html.replace(bundle, "")
    assert len(bundle) > 500_000
    assert "://" not in rest
    assert "@import" not in rest
    assert "url(" not in rest
    assert "default-src 'none'" in html


def test_it_is_small(html: str) -> None:
    assert len(html.encode()) < 6_000_000


def test_every_claim_and_setup_has_one_entry(page: Page) -> None:
    wanted = [f"{claim}-{s}" for claim in CLAIMS for s in SETUPS]
    assert [i for i in page.ids if re.fullmatch(r"A\d+[ab]?-.*", i)] == wanted
    assert len(set(page.ids)) == len(page.ids)


def test_links_within_the_page_lead_somewhere(page: Page) -> None:
    anchors = {a["href"][1:] for t, a in page.elements if t == "a" and (a.get("href") or "").startswith("#")}  # type: ignore[index]
    assert anchors
    assert anchors <= set(page.ids)


def test_verdicts_are_words_not_only_colours(page: Page) -> None:
    text = " ".join(" ".join(page.words).split())
    for words in ("reproduced", "in part", "no effect", "undecidable"):
        assert words in text


def test_every_chart_has_a_specification_and_every_specification_a_chart(html: str, page: Page) -> None:
    specs = json.loads(
        re.search(r'<script type="application/json" id="charts">(.*?)</script>', html, re.S)[1]
    )  # type: ignore[index]
    shown = [a["data-chart"] for _, a in page.elements if "data-chart" in a]
    assert sorted(shown) == sorted(specs)  # type: ignore[type-var]
    # Figures 4 to 6: 3 set-ups × jitter × 3 schemes × 3 panels × 2 topologies; Fig. 7: 6, Fig. 8: 4 each.
    assert sum(name.startswith("Fig. ") for name in specs) == 108
    assert sum(name.startswith("tokens-") for name in specs) == 36
    assert all(spec["width"] == "container" for spec in specs.values())


def test_without_full_there_is_nothing_to_choose_and_the_page_says_what_has_the_rest() -> None:
    made = synthetic.report()
    ran = {job.cell for job in plan("ard").jobs}
    made.cells = {cell: m for cell, m in made.cells.items() if cell in ran}
    made.judged = judge(made.paper.findings(made.cells))
    made.variants = {"jitter": judge(made.paper.findings(made.cells, "jitter"))}
    assert {j.setup for j in made.judged} == {"as-described", "full-core-buffer"}
    assert not made.variants["jitter"]
    html = render(made)
    assert "The same with sender jitter, and behind a tail-drop edge link: with <code>--full</code>." in html
    assert 'name="jitter"' not in html
    assert {row["setup"] for row in report_json(made)["placebo"]} == {"as-described", "full-core-buffer"}


def test_quick_mode_says_so(html: str) -> None:
    assert "Quick mode." in html
    full = synthetic.report()
    full.quick = False
    assert "Quick mode." not in render(full)


def two_setups() -> Report:
    """A report of two set-ups: all as claimed in the one, not so in the other."""
    made = synthetic.report(drops_core=0.0, fi=0.8)
    made.judged = [j for j in made.judged if j.setup in ("as-described", "tail-drop-edge")]
    return made


def test_the_page_opens_with_four_sentences_and_a_picture() -> None:
    made = synthetic.report()
    html = render(made)
    first = html[: html.index("<nav")]
    said = " ".join(" ".join(Page(first).words).split())
    assert all(heading in said for heading in HEADINGS.values())
    assert first.count('data-chart="advice"') == 1
    # Written for who has not read the paper.
    assert not re.search(r"\bA\d+\b", said)


def test_a_sentence_that_the_runs_do_not_bear_out_says_so() -> None:
    html = render(synthetic.report())
    assert "These runs do not bear this out: none lo is 0.789, not &gt; 0.98" in html


def test_claims_that_few_seeds_cannot_show_are_named() -> None:
    made = two_setups()
    claims = {j.claim: ["reproduced", 1, 0, 1] for j in made.judged}
    atlas = {"seeds": 3, "design": [{"kind": "default", "claims": claims}]}
    assert too_few_seeds(made, atlas) == ""
    claims["A2"] = ["in_part", 1, 0, 2]
    assert too_few_seeds(made, atlas) == (
        "With 3 seeds a point, A2 is not shown even at the default, where more seeds show it: its share"
        " would be larger with more."
    )
    claims["A3"] = ["not_shown", 0, 0, 2]
    assert too_few_seeds(made, atlas).startswith("With 3 seeds a point, A2 and A3 are not shown even at the")
    # What is not shown in the primary set-up either has nothing to do with seeds.
    made.judged = [replace(j, verdict=Verdict.NOT_SHOWN) if j.claim == "A2" else j for j in made.judged]
    assert "A3 is not shown even" in too_few_seeds(made, atlas)


def test_what_was_fitted_says_so_wherever_it_is_named() -> None:
    made = two_setups()
    for setup in made.paper.about["setups"]:
        setup["fitted"] = setup["id"] == "tail-drop-edge"
    # The tally, the matrix, the description, and each claim in full.
    assert render(made).count("found after seeing the paper’s numbers") == 3 + len(CLAIMS)
    assert [s["fitted"] for s in report_json(made)["setups"]] == [False, True]
    for setup in made.paper.about["setups"]:
        setup["fitted"] = False
    assert "found after seeing the paper’s" not in render(made)


def test_without_scripts_there_are_still_pictures(html: str) -> None:
    pictures = re.findall(r"<svg data-still.*?</svg>", html, re.S)
    assert 4 <= len(pictures) <= 16
    assert all("<path" in svg and len(svg) < 60_000 for svg in pictures)
    # A chart's element holds nothing else until its script has drawn it.
    assert re.search(r'data-chart="fi-[^>]*><svg data-still', html)


def test_it_prints_whole_charts(html: str) -> None:
    printed = html.split("@media print {")[1].split("</style>")[0]
    assert re.search(r"\.chart svg \{[^}]*width: 100% !important", printed)
    assert "break-inside: avoid" in printed
    assert "downloadFileName: named(" in html


def test_lines_differ_without_colour() -> None:
    names = [f"flow {i}" for i in range(12)]
    rows = [{"scheme": n, "x": float(t), "mean": 1.0, "lo": 0.9, "hi": 1.1} for n in names for t in (1, 2)]
    spec = curve(rows, names, x="x", y="y")
    found = [layer["encoding"] for layer in spec["layer"]]
    dashes = next(e["strokeDash"]["scale"]["range"] for e in found if "strokeDash" in e)
    marks = next(e["shape"]["scale"]["range"] for e in found if "shape" in e)
    pairs = {(tuple(dash), mark) for dash, mark in zip(dashes, marks, strict=True)}
    assert len(pairs) == len(names)


def test_text_is_escaped() -> None:
    made = synthetic.report()
    made.paper.about["summary"] = "</script><script>alert(1)</script> & so on"
    assert "<script>alert" not in render(made)


def test_the_same_results_give_the_same_page(html: str) -> None:
    assert render(synthetic.report(drops_core=0.0, fi=0.8)) == html


def test_json_has_one_entry_a_claim_and_setup(tmp_path: Path) -> None:
    made = synthetic.report(drops_core=0.0, fi=0.8)
    path = write(made, tmp_path / "ard")
    assert path == tmp_path / "ard" / "index.html"
    names = ["advice.svg", "experiment.toml", "index.html", "measures.csv", "results.json"]
    assert sorted(p.name for p in path.parent.iterdir()) == names
    assert inprofile.load(path.parent / "experiment.toml").flows == 4
    data = json.loads((path.parent / "results.json").read_text("utf-8"))
    assert data == json.loads(json.dumps(report_json(made)))
    assert [(c["id"], c["setup"]) for c in data["claims"]] == [(claim, s) for claim in CLAIMS for s in SETUPS]
    for claim in data["claims"]:
        assert claim["verdict"] in set(Verdict)
        counts = claim["comparisons"]
        assert counts["total"] == sum(
            counts[o] for o in ("holds", "opposite", "no_effect", "open", "undecidable")
        )
        assert counts["total"] == len(claim["measured"]["comparisons"])
        assert claim["numbers"] == {
            "inside": sum(n["inside"] for n in claim["measured"]["numbers"]),
            "total": sum(n["obstacle"] is None for n in claim["measured"]["numbers"]),
        }
        assert claim["text"]
        assert claim["why"]
        assert claim["measured"]["comparisons"]
    assert data["quick"] is True


def test_json_has_the_keys_that_others_build_on() -> None:
    """Of a claim, and of its counts; the atlas's are asked for beside it."""
    for claim in report_json(two_setups())["claims"]:
        assert list(claim) == [
            "id", "setup", "text", "paper", "measured", "verdict", "because", "told", "source", "comparisons",
            "numbers", "holds_where", "p", "p_holm", "why", "variants",
        ]  # fmt: skip
        assert {"holds", "opposite", "open", "total"} <= set(claim["comparisons"])
        assert set(claim["numbers"]) == {"inside", "total"}
        assert claim["verdict"] in {
            "reproduced", "mostly", "in_part", "mixed", "not_shown", "no_effect", "opposite", "undecidable",
        }  # fmt: skip
        for where in claim["holds_where"]:
            assert set(where) in ({"setup", "verdict", "source"}, {"point", "verdict"})


def test_json_says_where_else_a_claim_holds() -> None:
    made = two_setups()
    by = {(c["id"], c["setup"]): c for c in report_json(made)["claims"]}
    here = {"source": "run"}
    # ARD is not fairer at the tail-drop edge, and is as described.
    assert by["A1", "tail-drop-edge"]["verdict"] == "no_effect"
    assert by["A1", "tail-drop-edge"]["holds_where"] == [
        {**here, "setup": "as-described", "verdict": "mostly"}
    ]
    assert by["A1", "as-described"]["holds_where"] == []
    # With an atlas, the point nearest to the default as well.
    point = {"limit": 50.0, "rtt": "with_queue"}
    entry = {"id": "A1", "nearest": {"point": point, "verdict": "mostly"}}
    made.atlas = {"claims": [entry, {"id": "A2", "nearest": None}]}
    assert holds_where(made, "A1", "as-described") == [{"point": point, "verdict": "mostly"}]
    assert holds_where(made, "A2", "tail-drop-edge") == [
        {**here, "setup": "as-described", "verdict": "reproduced"}
    ]


def test_json_holds_table_1_with_every_seed() -> None:
    rows = report_json(synthetic.report())["tables"]
    assert len(rows) == len(SETUPS) * 2 * 4 * 2
    first = next(
        r
        for r in rows
        if (r["setup"], r["topology"], r["scheme"], r["variant"]) == ("as-described", "four-flows", "rio", "")
    )
    assert first["paper"] == 0.786
    assert len(first["measured"]["values"]) == len(first["seeds"]) == 6
    # Nothing of the paper's leaks into what is measured.
    assert first["measured"]["mean"] != 0.786
    assert {r["paper"] for r in rows if r["scheme"] == "placebo"} == {None}


def test_csv_has_every_measure_of_every_seed() -> None:
    made = synthetic.report()
    rows = list(csv.DictReader(io.StringIO(measures_csv(made))))
    assert len(rows) == sum(len(m.seeds) * len(m.values) for m in made.cells.values())
    found = [float(r["measured"]) for r in rows if r["measure"] == "fi" and r["sweep"] == ""]
    assert found[:6] == list(made.cell("as-described", "four-flows", "rio")["fi"])


@pytest.mark.parametrize("form", ["svg", "pdf"])
def test_figures_fit_to_print(tmp_path: Path, form: str) -> None:
    rows = [{"scheme": "RIO", "x": 1.0, "mean": 2.0, "lo": 1.5, "hi": 2.5}]
    both = {"x_lo": 0.9, "x_hi": 1.1, "y": 2.0, "y_lo": 1.5, "y_hi": 2.5, "label": "3", "order": 0}
    specs = {
        "Fig. 1": curve(rows, ["RIO"], x="flows", y="rate", paper=[{"label": "Fig. 1", "x": 1.0, "y": 2.2}]),
        "Fig. 2": frontier([{**rows[0], **both}], ["RIO"], x="use", y="delay", log=(False, True)),
        "Fig. 3": lines([{"scheme": "Flow0", "x": t, "y": 2.0 * t} for t in (0, 1)], ["Flow0"], x="s", y="y"),
    }
    written = write_figures(specs, tmp_path, form)
    assert [p.name for p in written] == [f"fig.-{n}.{form}" for n in (1, 2, 3)]
    magic = b"<svg" if form == "svg" else b"%PDF"
    assert all(p.read_bytes().startswith(magic) for p in written)


def test_an_unknown_form_of_figures_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="choose from svg, pdf"):
        write_figures({}, tmp_path, "png")


def test_the_overview_has_every_verdict_of_every_paper(tmp_path: Path) -> None:
    made = two_setups()
    write(made, tmp_path / "ard")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "results.json").write_text("{}", "utf-8")
    page = Page(write_overview(tmp_path).read_text("utf-8"))
    links = [a["href"] for t, a in page.elements if t == "a" and "index.html#A" in (a.get("href") or "")]
    wanted = {f"ard/index.html#{j.claim}-{j.setup}" for j in made.judged}
    assert wanted <= set(links)
    verdicts = [a["class"] for t, a in page.elements if t == "span" and "verdict " in (a.get("class") or "")]
    for judged in made.judged:
        assert f"verdict {judged.verdict.value}" in verdicts
    assert "Quick mode" in page.words
    text = " ".join(" ".join(page.words).split())
    assert "Claims by verdict ✓ 11 reproduced" in text
    assert "In the primary set-ups ✓ 11 reproduced" in text
    assert "In all set-ups ✓ 20 reproduced" in text
