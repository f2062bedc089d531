"""The documentation: its examples do what they show, its links lead somewhere, its notebook runs."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import docs_examples
import inprofile
import inprofile.papers
from inprofile.studies.compare.schemes import Place, lengths, read_schemes

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md")) + [
    ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG")
]
#: What a page's examples need besides the program; `make docs` installs it and asks for it.
NEEDS = {"tables.md": ("pandas", "polars", "duckdb")}

_LINK = re.compile(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def runnable(page: Path) -> bool:
    return any(
        block.language == "console" or (block.language == "python" and ">>>" in block.text)
        for block in docs_examples.blocks(page)
    )


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.parent != ROOT and runnable(page)], ids=lambda page: page.stem
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_examples_do_what_they_show(page: Path, tmp_path: Path) -> None:
    missing = [name for name in NEEDS.get(page.name, ()) if importlib.util.find_spec(name) is None]
    if missing and not os.environ.get("INPROFILE_DOCS"):
        pytest.skip(f"{page.name} needs {', '.join(missing)}: make docs runs it")
    assert docs_examples.run(page, tmp_path) > 0


def anchors(page: Path) -> set[str]:
    """Headings as links write them, GitHub's way."""
    text = _CODE.sub(lambda m: m[0].strip("`") if not m[0].startswith("```") else "", page.read_text("utf-8"))
    found = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(_CODE.sub("", page.read_text("utf-8"))):
        if "://" in link:
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        assert target.exists(), f"{page.relative_to(ROOT)}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{page.relative_to(ROOT)}: {link}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_row_belongs_to_a_table(page: Path) -> None:
    """Rows without a header and its rule are shown as text, bars and all."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for rows in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert re.match(r"\|.*\n\|[\s:|-]+\n", rows), rows[:80]


def test_reports_that_are_not_there_are_not_renewed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, DOCS / "renew.py", tmp_path / "nowhere"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "nowhere has no reports" in done.stderr


def test_every_mechanism_is_on_a_page() -> None:
    """By a section of its own, or by `others`, which shows the rest."""
    for kind, name in (("marker", "markers"), ("aqm", "queues"), ("scheduler", "schedulers")):
        text = (DOCS / "concepts" / f"{name}.md").read_text("utf-8")
        every = {m.name for m in inprofile.mechanisms() if m.kind == kind}
        shown = set(re.findall(r"^## `(\w+)`", text, re.MULTILINE))
        assert shown <= every, f"{name}.md has {shown - every}, which the program has not"
        assert shown == every or f"```{{others}} {kind}" in text


def test_each_paper_has_a_page_and_a_reading() -> None:
    for name in inprofile.papers.names():
        assert (DOCS / "papers" / f"{name}.md").exists()
        assert (DOCS / "readings" / f"{name}.md").exists()


def test_architecture_has_every_dependency_between_crates() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \|.*\| ([^|]*)\|$", (ROOT / "ARCHITECTURE.md").read_text("utf-8"), re.MULTILINE
    )
    said = {crate: set(re.findall(r"`(\w+)`", needs)) for crate, needs in rows}
    found = {}
    for manifest in (ROOT / "crates").glob("*/Cargo.toml"):
        about = tomllib.loads(manifest.read_text("utf-8"))
        tables = [about, *about.get("target", {}).values()]
        needed = {name for table in tables for name in table.get("dependencies", {})}
        found[manifest.parent.name] = {
            n.removeprefix("inprofile-") for n in needed if n.startswith("inprofile-")
        }
    assert said == found
    # And the sentence below the table: what uses crates without being one of them.
    text = " ".join((ROOT / "ARCHITECTURE.md").read_text("utf-8").split())
    for folder, verb in (("benches", "measures"), ("fuzz", "feeds bytes to")):
        sentence = re.search(rf"`{folder}`[^.;]*? {verb} ([^.;]*)[.;]", text)
        assert sentence is not None
        needs = tomllib.loads((ROOT / folder / "Cargo.toml").read_text("utf-8"))["dependencies"]
        crates = {n.removeprefix("inprofile-") for n in needs if n.startswith("inprofile-")}
        assert set(re.findall(r"`(\w+)`", sentence[1])) == crates, folder


def test_nothing_is_promised_of_an_index_that_does_not_have_it() -> None:
    texts = [*PAGES, *(ROOT / "python/inprofile").rglob("*.py")]
    promised = re.compile(r"pip3? install [^\n]*[ '\"]inprofile(\[\w+\])?['\"\s`]")
    assert promised.search("pip install 'inprofile[dask]'")
    assert [str(path) for path in texts if promised.search(path.read_text("utf-8"))] == []


def test_nobody_is_invented() -> None:
    """Author and maintainer are the contributors, everywhere."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["authors"] == project["maintainers"] == [{"name": "Inprofile contributors"}]
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.findall(r"^ +- name: (.*)$", citation, re.MULTILINE) == ['"Inprofile contributors"'] * 2
    version = re.search(r"^version: (.*)$", citation, re.MULTILINE)
    assert version is not None
    assert version[1] == inprofile.__version__
    assert "doi" not in citation
    assert "://" not in citation


NOTEBOOK = Path(__file__).parents[2] / "docs" / "guides" / "notebook.ipynb"
EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
book = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(book, timeout=120, kernel_name="python3").execute()
nbformat.write(book, sys.argv[2])
"""


def test_the_notebook_is_kept_without_outputs() -> None:
    cells = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    assert all(cell["outputs"] == [] for cell in cells if cell["cell_type"] == "code")


@pytest.mark.skipif(
    importlib.util.find_spec("nbclient") is None or shutil.which("unshare") is None,
    reason="needs nbclient and ipykernel (make docs installs them) and util-linux",
)
def test_the_notebook_runs_offline_and_shows_tables_and_charts(tmp_path: Path) -> None:
    (tmp_path / "execute.py").write_text(EXECUTE)
    made = tmp_path / "made.ipynb"
    # A kernel is spoken to over the loopback interface; there is no other.
    inside = 'ip link set lo up && exec "$0" "$@"'
    line = [sys.executable, str(tmp_path / "execute.py"), str(NOTEBOOK), str(made)]
    done = subprocess.run(
        [str(shutil.which("unshare")), "-rn", "sh", "-c", inside, *line],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    cells = json.loads(made.read_text("utf-8"))["cells"]
    outputs = [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]
    shown = [out["data"] for cell in outputs for out in cell]
    assert len(shown) == len(outputs) == 5
    assert all("<table" in "".join(data["text/html"]) for data in shown[:3])
    assert "<svg" in "".join(shown[3]["image/svg+xml"])
    assert not any(word in json.dumps(shown) for word in ("<script", "cdn."))


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
