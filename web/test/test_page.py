"""The page in a browser: what it shows, does, says and saves. Times are printed, not judged."""

from __future__ import annotations

import re
import time
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

import pytest
from playwright.sync_api import Browser, Page, expect

from conftest import SHOTS, Tab

VIEWS = {
    "list": "/",
    "figures": "/run?id=rio",
    "series": "/run?id=rio&tab=series",
    "packets": "/run?id=rio&tab=packets",
    "packet": "/run?id=rio&tab=packets&packet=310",
    "flows": "/run?id=narrow&tab=flows",
    "queue": "/run?id=rio&tab=queue",
    "whatif": "/run?id=ten&tab=whatif&set=links.bottleneck.queue.out.max_p%3D0.5",
    "origin": "/run?id=rio&tab=origin",
    "sweep": "/sweep?id=sweep",
    "runs": "/sweep?id=sweep&tab=runs",
    "curves": "/sweep?id=sweep&tab=curves&metric=delay_mean&by=links.bottleneck.rate",
    "surface": "/sweep?id=sweep&tab=surface",
    "compare": "/compare?ids=rio%7Cdrop_tail",
    "router": "/router",
    "customer": "/router?rows=customer%2Fupstream%2Fbob",
}
#: Controls without a name that a screen reader could say, and pictures without words.
NAMELESS = """() => {
  const all = document.querySelectorAll('button, input, select, a, [role=img], [tabindex="0"]');
  const label = (e) => e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.title;
  const said = (e) => label(e) || e.textContent.trim();
  return [...all].filter((e) => !said(e) && !e.labels?.length).map((e) => e.outerHTML.slice(0, 120));
}"""

AXE = (Path(__file__).parents[1] / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
#: What axe-core finds against WCAG 2.2, levels A and AA, and its own best practices: rule, and where.
VIOLATIONS = """async () => {
  const tags = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
  const { violations } = await axe.run(document, { runOnly: tags, resultTypes: ['violations'] });
  return violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.target} ${n.html.slice(0, 120)}`));
}"""


#: From the click to the frame with the first rows, in ms.
LISTED = """() => new Promise((done) => {
  const began = performance.now();
  const seen = new MutationObserver(() => {
    if (!document.querySelector('.sweep tbody tr')) return;
    seen.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
  });
  seen.observe(document.body, { childList: true, subtree: true });
  location.hash = '#/sweep?id=sweep&tab=runs';
})"""


#: Times of the frames that are drawn until `stop` is set, in ms.
FRAMES = """() => {
  window.frames_ = [];
  const each = (t) => { window.frames_.push(t); if (!window.stop_) requestAnimationFrame(each); };
  requestAnimationFrame(each);
}"""


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_view_fits_and_is_named(
    browser: Browser, address: str, name: str, width: int, scheme: str
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    tab = Tab(context, address)
    page = tab.open(VIEWS[name])
    expect(page.locator("h1")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(NAMELESS) == []
    page.evaluate(AXE)
    assert page.evaluate(VIOLATIONS) == []
    back = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert back == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(18, 21, 27)")
    assert page.locator(".problem:visible").count() == 0
    if name == "figures" and width == 1280:
        cut = "() => [...document.querySelectorAll('.scroll')].map((e) => e.scrollWidth - e.clientWidth)"
        assert max(page.evaluate(cut)) == 0
    tab.shot(f"{name}-{width}-{scheme}")
    context.close()
    assert tab.wrong == []
    assert {url.split("/")[2] for url in tab.asked if url.startswith("http")} == {address.split("/")[2]}


def test_the_list_is_filtered_and_says_what_is_broken(tab: Tab) -> None:
    page = tab.open("/")
    expect(page.locator("tbody tr")).to_have_count(8)
    expect(page.locator("tr.broken")).to_contain_text("flows.parquet missing")
    page.get_by_label("Filter").fill("drop_tail")
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile("find=drop_tail"))
    page.reload()
    page.wait_for_selector("html[data-ready]")
    expect(page.locator("tbody tr")).to_have_count(1)


def test_cursors_are_linked_and_keys_move_them(tab: Tab) -> None:
    page = tab.open("/run?id=rio&tab=series&bin=raw")
    plots = page.locator(".plot")
    assert plots.count() == 3
    plots.first.focus()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+ArrowRight")
    expect(page.locator(".at").nth(1)).to_have_text("at 1 s")
    expect(page.locator(".at").first).to_have_text("at 1 s")
    expect(page.locator("#told")).to_contain_text("1 s: assured.0")
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile("from="))
    page.keyboard.press("0")
    expect(page).not_to_have_url(re.compile("from="))
    plots.nth(1).hover()
    expect(page.locator(".at").first).not_to_have_text("at 1 s")
    expect(page.locator(".at").first).to_have_text(page.locator(".at").nth(1).inner_text())
    first = page.locator(".line").first
    first.click()
    expect(first).to_have_attribute("aria-pressed", "false")


def test_a_view_is_its_address(tab: Tab) -> None:
    page = tab.open("/run?id=rio&tab=series&seed=2&panels=cwnd&flows=assured.3&from=10&to=20")
    expect(page.locator(".panel")).to_have_count(1)
    expect(page.locator(".line")).to_have_count(1)
    expect(page.locator(".origin")).to_contain_text("seed 2")


#: The share of the first picture that is drawn on.
INKED = """() => {
  const canvas = document.querySelector('.plot canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let drawn = 0;
  for (let i = 3; i < data.length; i += 4) if (data[i] > 40) drawn += 1;
  return 4 * drawn / data.length;
}"""


@pytest.mark.parametrize("width", [1280, 390])
def test_rates_are_lines_and_the_samples_a_click_away(browser: Browser, address: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900})
    tab = Tab(context, address)
    page = tab.open("/run?id=fine&tab=series&panels=received")
    assert page.evaluate(INKED) < 0.25
    said = page.locator(".means")
    bin_ = "500 ms" if width == 1280 else "1 s"
    expect(said).to_contain_text(re.compile(rf"mean over {bin_}: about \d+ packets a line"))
    expect(page.locator(".panel")).to_contain_text("On the wire, with headers. A packet counts whole")
    expect(page.locator(".origin")).to_contain_text(f"means over {bin_}")
    page.get_by_role("button", name="Each sample (5 ms)").click()
    expect(said).to_contain_text("mean over 5 ms: each sample")
    expect(page.get_by_label("Rates")).to_have_value("raw")
    assert page.evaluate(INKED) > 0.4
    page.reload()
    page.wait_for_selector("html[data-ready]")
    expect(said).to_contain_text("each sample")
    page.get_by_label("Rates").select_option("mean over 2.5 s")
    expect(said).to_contain_text("mean over 2.5 s")
    assert "bin=2.5" in page.url
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.get_by_label("Rates").select_option("auto")
    # A shorter stretch of time has narrower bins.
    page.locator(".plot").focus()
    for _ in range(4):
        page.keyboard.press("+")
    expect(said).not_to_contain_text(bin_)
    expect(said).to_contain_text("packets a line")
    context.close()
    assert tab.wrong == []


def test_thresholds_stand_in_the_picture_of_the_queue(tab: Tab, tmp_path: Path) -> None:
    page = tab.open("/run?id=rio&tab=series&panels=queue bottleneck")
    said = page.locator(".levels:visible")
    expect(said).to_have_text("┄ OUT min_th 10; IN min_th, OUT max_th 30; IN max_th 45; limit 60 packets")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="SVG").click()
    waiting.value.save_as(tmp_path / "queue.svg")
    saved = (tmp_path / "queue.svg").read_text()
    for name in ("OUT min_th", "IN min_th, OUT max_th", "IN max_th", "limit"):
        assert f">{name}</text>" in saved
    # A target is a delay, and so many packets at the link's rate.
    page = tab.open("/run?id=codel&tab=series&panels=queue bottleneck")
    expect(page.locator(".levels:visible")).to_have_text("┄ target of 5 ms, 1.25; limit 100 packets")
    # They follow a slider.
    page = tab.open("/run?id=rio&tab=whatif&set=links.bottleneck.queue.out.min_th%3D20")
    expect(page.locator(".levels:visible")).to_contain_text("OUT min_th 20")
    page.get_by_role("button", name="As it was", exact=True).click()
    expect(page.locator(".levels:visible")).to_contain_text("OUT min_th 10")


def test_a_sweep_opens_on_curves_and_means_and_runs_are_a_step_deeper(tab: Tab) -> None:
    page = tab.open("/sweep?id=sweep")
    expect(page.locator("figure svg").first).to_be_visible()
    table = page.get_by_role("region", name="Means of each setting")
    expect(table.locator("thead")).to_contain_text("contracts kept")
    expect(table.locator("tbody tr").first).to_contain_text("[")
    page.get_by_role("link", name="Runs of setting 7", exact=True).click()
    expect(page.get_by_role("region", name="Runs").locator("tbody tr")).to_have_count(5)
    expect(page.locator("main")).to_contain_text("Runs of setting 7: rate 2 Mbit/s")
    page.get_by_role("link", name="All runs").click()
    expect(page.locator(".bar")).to_contain_text("1,000 of 1,000 runs")


def test_why_a_flow_starves_and_the_run_without_that(tab: Tab) -> None:
    page = tab.open("/run?id=narrow")
    page.get_by_role("link", name="Why assured.3 fell short").click()
    cause = page.locator(".cause")
    expect(cause).to_have_text(
        re.compile(
            r"^assured\.3 got \d\d % of its contract because its receiver's window of 2 packets lets through"
        )
    )
    table = page.get_by_role("region", name="Flows")
    expect(table.locator("tbody tr")).to_have_count(4)
    expect(table.locator("thead")).to_contain_text("Of the contract")
    page.get_by_role("button", name="Run it without that").click()
    expect(page.locator(".why .good")).to_contain_text("% of the gap closed.")
    page.get_by_role("button", name="Why assured.0 got what it got").click()
    expect(page.locator(".why h2")).to_have_text("Why assured.0 got what it got")
    expect(page.locator(".why")).to_contain_text("Nothing is amiss.")
    assert "flow=assured.0" in page.url


#: A hash of what the canvas shows.
PICTURE = """() => {
  const canvas = document.querySelector('.stage');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let hash = 0;
  for (let i = 0; i < data.length; i++) hash = (hash * 31 + data[i]) | 0;
  return hash;
}"""


@pytest.mark.parametrize("width", [1280, 390])
def test_a_queue_is_played_paused_scrubbed_and_stepped(browser: Browser, address: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, accept_downloads=True)
    tab = Tab(context, address)
    page = tab.open("/run?id=rio&tab=queue")
    canvas, said = page.locator(".stage"), page.locator(".status")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    first = page.evaluate(PICTURE)
    began = float(canvas.get_attribute("data-time") or 0)
    page.get_by_role("button", name="Play").click()
    page.wait_for_timeout(1500)
    assert float(canvas.get_attribute("data-time") or 0) > began
    page.get_by_role("button", name="Pause").click()
    assert page.evaluate(PICTURE) != first
    held = canvas.get_attribute("data-time")
    page.wait_for_timeout(300)
    assert canvas.get_attribute("data-time") == held
    # Stepped to a drop: its reason is said.
    page.get_by_role("button", name="Next drop").click()
    expect(page.locator(".dropped-why")).to_contain_text(
        re.compile(r"packet \d+ of assured\.\d dropped \(early\)")
    )
    expect(page.locator(".dropped-why")).to_contain_text("random number")
    # By hand, forwards and back: the same moment is the same picture.
    slider = page.get_by_role("slider", name="Time")
    slider.fill("5000")
    there, words = page.evaluate(PICTURE), said.inner_text()
    slider.fill("9000")
    assert page.evaluate(PICTURE) != there
    slider.fill("5000")
    assert (page.evaluate(PICTURE), said.inner_text()) == (there, words)
    expect(page).to_have_url(re.compile("t=1?[0-9.]+"))
    before = float(canvas.get_attribute("data-time") or 0)
    canvas.focus()
    page.keyboard.press("ArrowRight")
    assert 0 < float(canvas.get_attribute("data-time") or 0) - before < 0.1
    # A click on the time line under the queue.
    box = canvas.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 30, box["y"] + 230)
    assert float(canvas.get_attribute("data-time") or 0) < before
    context.close()
    assert tab.wrong == []


def test_what_if_follows_a_slider(tab: Tab) -> None:
    page = tab.open("/run?id=rio&tab=whatif")
    expect(page.locator(".status")).to_contain_text("Simulated in")
    before = page.locator(".bar-row").first.inner_text()
    slider = page.get_by_label("bottleneck out max_p", exact=True)
    slider.focus()
    for _ in range(12):
        page.keyboard.press("PageUp")
    expect(page.locator(".bar-of .was").first).to_be_visible()
    expect(page.locator(".bar-row").first).not_to_have_text(before)
    expect(page).to_have_url(re.compile("set=links.bottleneck.queue.out.max_p"))
    expect(page.locator(".origin").first).to_contain_text("what if links.bottleneck.queue.out.max_p")
    # What can't run says why, and the last picture stays.
    page.get_by_label("bottleneck: out min_th, exactly").fill("50")
    page.keyboard.press("Enter")
    expect(page.locator(".problem")).to_contain_text("min_th (50 packets) is not below max_th (30 packets)")
    assert page.locator(".panel").count() == 3
    page.get_by_role("button", name="As it was", exact=True).click()
    expect(page.locator(".problem")).to_be_hidden()
    expect(page.locator(".bar-row").first).to_have_text(before, use_inner_text=True)


def test_why_a_packet_was_dropped(tab: Tab) -> None:
    page = tab.open("/run?id=rio&tab=packets")
    page.get_by_role("combobox", name="Verdict").select_option("drop|early")
    # The rows that were there before the choice are replaced once the server has answered.
    expect(page.locator("table tbody tr").first).to_contain_text("early")
    page.locator("button.link").first.click()
    expect(page.locator(".way .dropped")).to_contain_text("What would have saved it")
    expect(page.locator(".way .dropped")).to_contain_text("random number")
    assert "packet=" in page.url
    number = re.search(r"packet=(\d+)", page.url)
    assert number is not None
    page.get_by_role("link", name="See it in the queue").click()
    expect(page.locator(".dropped-why")).to_contain_text(f"packet {number[1]} of")


def test_the_packets_have_the_width_until_one_is_chosen(tab: Tab) -> None:
    page = tab.open("/run?id=rio&tab=packets")
    cut = (
        "() => { const e = document.querySelector('.split .scroll'); return e.scrollWidth - e.clientWidth; }"
    )
    table, main = page.locator(".split .scroll"), page.locator("main")
    page.wait_for_selector(".split tbody tr")
    assert page.evaluate(cut) == 0
    assert table.bounding_box()["width"] > 0.9 * main.bounding_box()["width"]  # type: ignore[index]
    page.locator("button.link").first.click()
    expect(page.locator(".way h2")).to_be_visible()
    assert page.evaluate(cut) == 0
    assert table.bounding_box()["width"] < 0.7 * main.bounding_box()["width"]  # type: ignore[index]


def test_times(tab: Tab) -> None:
    """Printed for whoever looks; a busy machine is not the page's fault."""

    def painted(page: Page) -> float:
        script = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN"
        return float(page.evaluate(script))

    page = tab.open("/")
    print(f"\nfirst paint of the list: {painted(page):.0f} ms")
    session = tab.context.new_cdp_session(page)
    # The processor's time, not the clock's: other programs run too.
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def busy() -> float:
        found = session.send("Performance.getMetrics")["metrics"]
        return float(next(m["value"] for m in found if m["name"] == "TaskDuration"))

    start = busy()
    listed = page.evaluate(LISTED)
    print(
        f"a sweep of 1,000 runs listed after {listed:.0f} ms by the clock,"
        f" {1e3 * (busy() - start):.0f} ms of the page's thread"
    )
    page = tab.open("/run?id=ten&tab=whatif")
    page.wait_for_selector(".whatif[data-drawn], .view[data-drawn]")
    drawn = []
    slider = page.get_by_label("bottleneck out max_p", exact=True)
    slider.focus()
    for _ in range(10):
        page.keyboard.press("PageUp")
        page.wait_for_timeout(200)
        drawn.append(int(page.locator(".view").get_attribute("data-drawn") or 0))
    print(f"what if, 10 flows and 30 s: {min(drawn)} to {max(drawn)} ms from slider to picture")
    page = tab.open("/run?id=fine&tab=series&bin=raw")
    page.locator(".plot").first.focus()
    for what, keys in (("cursor", ["ArrowRight"] * 30), ("zoom", ["+", "0"] * 10)):
        start = busy()
        for key in keys:
            page.keyboard.press(key)
        page.wait_for_timeout(300)
        print(
            f"156,000 points, {what}: {1e3 * (busy() - start) / len(keys):.1f} ms of the page's thread a step"
        )
    page = tab.open("/run?id=rio&tab=queue")
    page.get_by_role("button", name="Play").click()
    page.evaluate(FRAMES)
    page.wait_for_timeout(2000)
    at = page.evaluate("() => { window.stop_ = true; return window.frames_; }")
    played = [b - a for a, b in pairwise(at)]
    print(f"a queue packet by packet: {1e3 / mean(played):.0f} frames a second, drawn in software")
    page = tab.open("/run?id=fine&tab=series&bin=raw")
    frames = sorted(dragged(page))
    print(
        f"156,000 points, {len(frames)} frames while dragging, drawn in software:"
        f" {1e3 / mean(frames):.0f} a second, {median(frames):.1f} ms each in the middle,"
        f" 95 % within {frames[len(frames) * 95 // 100]:.1f} ms"
    )
    assert SHOTS.is_dir()


def dragged(page: Page) -> list[float]:
    """The times between frames, in ms, while a part of the plot is chosen with the mouse for two seconds."""
    box = page.locator(".plot").first.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 80, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.evaluate(FRAMES)
    began, step = time.monotonic(), 0
    while time.monotonic() - began < 2:
        step += 1
        page.mouse.move(box["x"] + 80 + 7 * step % (box["width"] - 160), box["y"] + box["height"] / 2)
    at = page.evaluate("() => { window.stop_ = true; return window.frames_; }")
    page.mouse.up()
    return [b - a for a, b in pairwise(at)]
