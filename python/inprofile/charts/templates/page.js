// Draws each chart when it comes near the screen, the others while nothing else is to do, so that a print has them
// all; again when light and dark change.
(() => {
  "use strict";
  const specs = JSON.parse(document.getElementById("charts").textContent);
  document.documentElement.classList.add("js");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Map();

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const text = style.getPropertyValue("--muted").trim();
    const grid = style.getPropertyValue("--line").trim();
    const font = style.getPropertyValue("--font").trim();
    return {
      background: "transparent",
      font,
      view: { stroke: "transparent" },
      axis: { labelColor: text, titleColor: text, gridColor: grid, domainColor: grid, tickColor: grid,
              titleFontWeight: 500, labelFontSize: 11, titleFontSize: 11 },
      legend: { labelColor: text, titleColor: text, labelFontSize: 12, symbolSize: 90, rowPadding: 4, labelLimit: 280 },
    };
  }

  // A legend above its chart is one row that does not break: as many columns as fit, all in one row where they do.
  const pen = document.createElement("canvas").getContext("2d");
  function columns(spec, width) {
    const layers = [spec, ...(spec.layer ?? [])];
    const colours = layers.map((l) => l.encoding?.color).filter((c) => c?.legend && c.scale?.domain);
    const names = colours[0]?.scale.domain ?? [];
    pen.font = `12px ${theme().font}`;
    const widths = names.map((name) => pen.measureText(name).width + 34);
    const room = width - 60;
    const row = widths.reduce((sum, w) => sum + w, 0);
    return row <= room ? 0 : Math.max(1, Math.floor(room / Math.max(...widths)));
  }

  // What a saved figure is called: the page and the chart.
  function named(chart) {
    return `${document.title.split(":")[0]} ${chart}`.toLowerCase().replace(/[^a-z0-9.+]+/g, "-").replace(/^-+|-+$/g, "");
  }

  async function draw(element) {
    const spec = specs[element.dataset.chart];
    if (!spec) throw new Error(`no chart ${element.dataset.chart}`);
    const look = theme();
    look.legend.columns = columns(spec, element.clientWidth);
    drawn.get(element)?.finalize();
    const options = { mode: "vega-lite", renderer: "svg", downloadFileName: named(element.dataset.chart), actions: { export: true, source: false, compiled: false, editor: false },
                      config: look, tooltip: { theme: dark.matches ? "dark" : "light" } };
    drawn.set(element, await window.vegaEmbed(element, spec, options));
  }

  const visible = (element) => element.offsetParent !== null;
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting && !drawn.has(entry.target)) {
        drawn.set(entry.target, null);
        draw(entry.target).catch(report);
      }
    }
  }, { rootMargin: "800px" });
  const report = (error) => { console.error(error); };
  const all = [...document.querySelectorAll("[data-chart]")];
  all.forEach((element) => watcher.observe(element));

  const soon = window.requestIdleCallback ?? ((work) => setTimeout(work, 50));
  async function drawNext() {
    const next = all.find((element) => visible(element) && !drawn.has(element));
    if (!next) return;
    drawn.set(next, null);
    await draw(next).catch(report);
    soon(drawNext);
  }
  window.addEventListener("load", () => soon(drawNext));

  dark.addEventListener("change", () => {
    for (const element of drawn.keys()) draw(element).catch(report);
  });
  window.addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((d) => { d.open = true; });
    for (const element of all) if (visible(element) && !drawn.has(element)) draw(element).catch(report);
  });

  // A link to a claim opens it.
  function open() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const details = target?.closest("details") ?? target?.querySelector("details");
    if (details) { details.open = true; target.scrollIntoView(); }
  }
  window.addEventListener("hashchange", open);
  open();

  // Choosers: each shows the one of its views whose keys are chosen.
  document.querySelectorAll("form.chooser").forEach((form) => {
    const views = document.querySelectorAll(`[data-view-of="${form.dataset.chooser}"]`);
    const show = () => {
      const chosen = Object.fromEntries(new FormData(form));
      views.forEach((view) => {
        view.hidden = !Object.entries(chosen).every(([key, value]) => view.dataset[key] === value);
      });
      window.dispatchEvent(new Event("resize"));
    };
    form.addEventListener("change", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    show();
    form.addEventListener("change", () => soon(drawNext));
  });
})();
