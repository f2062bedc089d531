"""What the page saves and sends, who may see it, and a router that runs; in a browser."""

from __future__ import annotations

import base64
import csv
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Browser, expect
from test_page import VIEWS

import inprofile
import papers_synthetic
from conftest import SHOTS, Tab, served
from inprofile.studies.reproduce.report import write, write_overview
from inprofile.view import Folder, Watch, export, router

STREET = Path(__file__).with_name("street.py")
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or SHOTS.parent)
INPROFILED = TARGET / "debug" / "inprofiled"
#: Width and frames of a GIF as the browser's own decoder has them, and how many of these differ.
DECODED = """async (text) => {
  const data = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const decoder = new ImageDecoder({ data, type: 'image/gif' });
  await decoder.tracks.ready;
  await decoder.completed;
  const { frameCount } = decoder.tracks.selectedTrack;
  const seen = new Set();
  let width = 0;
  for (let frameIndex = 0; frameIndex < frameCount; frameIndex++) {
    const { image } = await decoder.decode({ frameIndex });
    width = image.displayWidth;
    const canvas = new OffscreenCanvas(width, image.displayHeight);
    const to = canvas.getContext('2d');
    to.drawImage(image, 0, 0);
    image.close();
    seen.add(to.getImageData(0, 0, width, canvas.height).data.join());
  }
  decoder.close();
  return [width, frameCount, seen.size];
}"""
HOSTILE = "</title></script><img src=x onerror=alert(1)>\"quoted\" 'single' & 100 % — Größe 測試"


def test_the_film_is_saved_as_a_gif_and_a_video(tab: Tab, tmp_path: Path) -> None:
    page = tab.open("/run?id=rio&tab=queue&t0=20&t1=20.4&speed=0.2")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="GIF").click()
    name = waiting.value.suggested_filename
    assert re.fullmatch(r"four-flows-.*-queue-bottleneck-seed-1-20-s-[0-9a-f]{8}\.gif", name)
    waiting.value.save_as(SHOTS / "queue.gif")
    data = base64.b64encode((SHOTS / "queue.gif").read_bytes()).decode()
    width, frames, different = page.evaluate(DECODED, data)
    assert (width, frames) == (720, 25)
    assert different > 20
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Video").click()
    waiting.value.save_as(tmp_path / "queue.webm")
    assert (tmp_path / "queue.webm").read_bytes()[:4] == b"\x1a\x45\xdf\xa3"


@pytest.mark.parametrize("width", [1280, 390])
def test_the_index_of_the_reports_fits(browser: Browser, tmp_path: Path, width: int) -> None:
    write(papers_synthetic.report(), tmp_path / "ard")
    write_overview(tmp_path)
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    for name in ("index.html", "ard/index.html"):
        page.goto((tmp_path / name).as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == width, name
    page.goto((tmp_path / "index.html").as_uri())
    over = "() => [...document.querySelectorAll('.scroll')].map((e) => e.scrollWidth - e.clientWidth)"
    if width == 1280:
        assert max(page.evaluate(over)) == 0
    context.close()


def test_pictures_are_saved_under_their_names(tab: Tab, tmp_path: Path) -> None:
    page = tab.open("/run?id=rio&tab=series&panels=cwnd")
    for kind in ("SVG", "PNG", "CSV"):
        with page.expect_download() as waiting:
            page.get_by_role("button", name=kind).click()
        saved = waiting.value
        name = saved.suggested_filename
        assert name.startswith("four-flows-with-a-contract-share-a-link-seed-1-")
        assert name.endswith(f"-cwnd.{kind.lower()}")
        saved.save_as(tmp_path / name)
        data = (tmp_path / name).read_bytes()
        if kind == "SVG":
            assert data.startswith(b"<svg")
            assert b"seed 1" in data
        elif kind == "PNG":
            assert data.startswith(b"\x89PNG")
        else:
            origin, *rows = data.decode().splitlines()
            assert origin.startswith("# Four flows")
            assert next(csv.reader(rows)) == ["line", "time (s)", "segments"]
            assert len(rows) > 2000


def test_a_file_to_send_needs_nobody(browser: Browser, folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "sent.html"
    assert export(Folder(folder), file) == []
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    tab = Tab(context, file.as_uri())
    page = tab.open("/")
    expect(page.locator(".notice")).to_contain_text("nothing can be run, so there is no what-if")
    for view in ("series", "curves", "surface", "compare", "sweep", "runs", "figures"):
        page = tab.open(VIEWS[view])
        expect(page.locator("h1")).to_be_visible()
        assert page.locator(".problem").count() == 0, view
    page = tab.open(VIEWS["whatif"])
    expect(page.locator(".notice")).to_contain_text("What if is not in a file that was sent")
    assert {url for url in tab.asked if not url.startswith(("file:", "about:", "data:", "blob:"))} == set()
    context.close()
    assert tab.wrong == []


def test_a_hostile_title_is_text(browser: Browser, tmp_path: Path) -> None:
    """On the page, in saved pictures and their names, and in the file to send; a torn table is named."""
    place = tmp_path / "results"
    odd = inprofile.parse(inprofile.STARTER).with_(
        {"title": HOSTILE, "duration": "2 s", "measure.from": "1 s"}
    )
    odd.run([1]).write(place / "a")
    odd.run([1]).write(place / "half")
    table = place / "half" / "series.parquet"
    table.write_bytes(table.read_bytes()[:200])
    file = tmp_path / "sent.html"
    left_out = export(Folder(place), file)
    assert len(left_out) == 1
    assert "half, seed 1" in left_out[0]
    for where in (served(place), file.as_uri()):
        context = browser.new_context(viewport={"width": 390, "height": 900}, accept_downloads=True)
        tab = Tab(context, where)
        page = tab.open("/run?id=a&tab=series&panels=cwnd")
        expect(page.locator("h1")).to_have_text(HOSTILE)
        assert page.evaluate("document.title").startswith("</title></script>")
        assert page.locator("img, main script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        with page.expect_download() as waiting:
            page.get_by_role("button", name="SVG").click()
        name = waiting.value.suggested_filename
        assert re.fullmatch(r"[a-z0-9.+-]+-cwnd\.svg", name), name
        waiting.value.save_as(tmp_path / name)
        ElementTree.fromstring((tmp_path / name).read_text())  # noqa: S314 (it is our own)
        page = tab.open("/")
        expect(page.locator("tbody tr")).to_have_count(2)
        page = tab.open("/run?id=half&tab=series")
        said = "not in the file" if where.startswith("file:") else "series.parquet"
        expect(page.locator(".problem")).to_contain_text(said)
        context.close()
        assert tab.wrong == []


def test_without_the_token_nobody_gets_in(browser: Browser, address: str) -> None:
    page = browser.new_page()
    answer = page.goto(address.replace("let-me-in/", ""))
    assert answer is not None
    assert answer.status == 403
    page.close()


def test_a_running_router(browser: Browser, tmp_path: Path) -> None:
    """A real one between veths: its figures, its end, its return. Needs cargo build -p inprofile-router."""
    street = subprocess.Popen(
        [sys.executable, STREET, INPROFILED, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert street.stdin is not None
    assert street.stdout is not None

    def tell(word: str, answer: str) -> None:
        street.stdin.write(f"{word}\n")  # type: ignore[union-attr]
        street.stdin.flush()  # type: ignore[union-attr]
        assert street.stdout.readline() == f"{answer}\n"  # type: ignore[union-attr]

    assert street.stdout.readline() == "ready\n"
    watch = Watch(router(str(tmp_path / "control.sock")))
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    tab = Tab(context, served(None, watch))
    # Without a folder the router is what is shown first.
    page = tab.open("/")
    assert page.url.endswith("#/router")
    alice = page.locator("tr", has_text="alice")
    expect(alice).to_contain_text("2 Mbit/s")
    # Offered, sent, contract, IN: what street.py sends, and what the file promises.
    expect(alice.locator("td").nth(1)).to_have_text(re.compile(r"2\.[4-8]\d? Mbit/s"))
    expect(alice.locator("td").nth(4)).to_have_text(re.compile(r"(1\.9\d|2(\.0\d)?) Mbit/s"))
    expect(alice).to_contain_text("forced")
    expect(page.locator(".panel")).to_have_count(4)
    expect(page.locator(".line").first).to_contain_text("alice")
    tab.shot("router-real")
    tell("kill", "killed")
    status = page.locator(".status")
    expect(status).to_contain_text("The router does not answer")
    expect(alice.locator("td").nth(1)).to_contain_text("Mbit/s")
    tab.shot("router-gone")
    tell("start", "ready")
    expect(status).to_have_text("Live.")
    expect(page.get_by_text("restarted once while it was watched")).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(status).to_have_text("Paused.")
    page.get_by_label("Draw bob, upstream").uncheck()
    assert "rows=customer" in page.url
    context.close()
    assert tab.wrong == []
    street.stdin.close()
    street.stdout.close()
    assert street.wait(30) == 0
