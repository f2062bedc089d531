"""A folder of results, a server on it, and Debian's Chromium."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

import inprofile
from inprofile.view import Folder, Watch, listen, router, serve
from inprofile.view.server import page_files

sys.path.append(str(Path(__file__).resolve().parents[2] / "python" / "tests"))
from forked import RECORDED, StandIn

TOKEN = "let-me-in"  # noqa: S105 (nobody else has this server)
BUSY_MACHINE_TIMEOUT = 120_000  # ms, on a busy machine
SHOTS = Path(__file__).resolve().parents[2] / "target" / "page"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, a sweep of a thousand, many samples, and something broken."""
    place = tmp_path_factory.mktemp("page") / "results"
    starter = inprofile.parse(inprofile.STARTER)
    short = starter.with_({"duration": "2 s", "measure.from": "1 s"})
    starter.run([1, 2], trace=True).write(place / "rio")
    starter.with_(
        {"title": "Drop-tail", "links.bottleneck.queue": {"aqm": "drop_tail", "limit": "60 packets"}}
    ).run([1]).write(place / "drop_tail")
    window = {"title": "A narrow window", "flows.assured.tcp.window": "2 packets"}
    starter.with_(window).run([1]).write(place / "narrow")
    codel = {"title": "CoDel", "links.bottleneck.queue": {"aqm": "codel", "limit": "100 packets"}}
    starter.with_(codel).run([1]).write(place / "codel")
    fine = [{"queue": "bottleneck", "every": "5 ms"}, {"flows": "assured", "every": "5 ms"}]
    starter.with_({"title": "Fine samples", "monitors": fine}).run([1]).write(place / "fine")
    ten = {
        "title": "Ten flows, 30 s",
        "flows.assured.count": 10,
        "flows.assured.contract": "500 kbit/s",
        "links.bottleneck.rate": "10 Mbit/s",
        "duration": "30 s",
        "measure.from": "5 s",
    }
    starter.with_(ten).run([1]).write(place / "ten")
    axes = {
        "links.bottleneck.rate": inprofile.Range(2, 6, "Mbit/s", count=20),
        "links.bottleneck.queue.out.max_p": inprofile.Range(0.02, 0.5, "", count=10),
    }
    inprofile.sweep(short, axes, place / "sweep", seeds=5)
    short.run([1]).write(place / "torn")
    (place / "torn" / "flows.parquet").unlink()
    return place


def served(folder: Path | None, watch: Watch | None = None) -> str:
    """Where the page is served, with the token."""
    made = listen(0)
    shown = None if folder is None else Folder(folder)
    given = (shown, made, TOKEN, page_files())
    threading.Thread(target=serve, args=given, kwargs={"watch": watch}, daemon=True).start()
    return f"http://127.0.0.1:{made.getsockname()[1]}/{TOKEN}/"


@pytest.fixture(scope="session")
def address(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page on the folder, and on a router as it was recorded."""
    place = tmp_path_factory.mktemp("router") / "control.sock"
    StandIn(place, RECORDED)
    return served(folder, Watch(router(str(place))))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    program = shutil.which("chromium")
    assert program, "chromium is missing: apt-get install chromium"
    SHOTS.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=BUSY_MACHINE_TIMEOUT)
    with sync_playwright() as p:
        made = p.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield made
        made.close()


class Tab:
    """A page that fails the test when anything in it does."""

    def __init__(self, context: BrowserContext, address: str) -> None:
        self.context, self.address = context, address
        self.page: Page = context.new_page()
        self.page.set_default_timeout(BUSY_MACHINE_TIMEOUT)
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda m: self._said(m.type, m.text))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def _said(self, kind: str, text: str) -> None:
        # What the server refuses is told by the page, and by the browser too.
        if kind == "error" and not text.startswith("Failed to load resource"):
            self.wrong.append(text)

    def open(self, fragment: str) -> Page:
        """Show this view."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}#{fragment}")
        self.page.wait_for_selector("html[data-ready]")
        return self.page

    def shot(self, name: str) -> None:
        """Keep a picture to look at."""
        self.page.screenshot(path=SHOTS / f"{name}.png")


@pytest.fixture
def tab(browser: Browser, address: str) -> Iterator[Tab]:
    """A fresh profile, 1280 wide and light."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    made = Tab(context, address)
    yield made
    context.close()
    assert made.wrong == []
