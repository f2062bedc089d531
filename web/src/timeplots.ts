// Panels over time with one cursor and one stretch of time, drawn by uPlot.

import type uPlot from "uplot";
import { chart, FEW, HEIGHT, swatch } from "./chart";
import type { Bin } from "./bins";
import { decimated, firstFrom } from "./decimate";
import { fresh, h, put, tell } from "./dom";
import { inWords, merged } from "./levels";
import { number, quantity, scale } from "./format";
import { pictureMenu, type Picture } from "./save";
import type { Level, Panel } from "./panels";
import { Rates } from "./rates";
import { aligned } from "./samples";
import { colour, dash, onTheme } from "./theme";

export interface Options {
  /** Said below each picture, and written into what is saved. */
  origin: () => string;
  /** Words of file names. */
  names: () => (string | number)[];
  /** So many seconds are shown at least. */
  least?: number;
  /** What rates are means over at first; without it they are drawn as they came. */
  bin?: Bin;
  /** Called when somebody chooses what rates are means over. */
  binChanged?: (bin: Bin) => void;
  /** Called when the stretch of time changes; null is all. */
  zoomed?: (from: number | null, to: number | null) => void;
}

interface Shown {
  rates: Rates | null;
  /** What is drawn: what was sampled, or means of it. */
  panel: Panel;
  /** From the first sample to the last. */
  span: [number, number];
  plot: uPlot;
  root: HTMLElement;
  place: HTMLElement;
  values: HTMLElement[];
  time: HTMLElement;
  factor: number;
  /** Lines across, in the unit that is drawn, and what the legend says of them. */
  levels: Level[];
  levelsSaid: HTMLElement;
  /** All samples; the plot has as many of them as it has room for. */
  data: uPlot.AlignedData;
  /** Whether it is on the screen, or nearly. */
  seen: boolean;
  /** Whether it was not drawn anew since then, as nobody saw it. */
  stale: boolean;
  /** Whether the plot has all samples of the stretch of time. */
  whole: boolean;
}

/** A column of panels. */
export class TimePlots {
  readonly root = h("div", { class: "panels" });
  private shown: Shown[] = [];
  private readonly key = fresh("cursor");
  private range: [number, number] | null = null;
  private readonly observer: ResizeObserver;
  private readonly sight: IntersectionObserver;
  private readonly hidden = new Set<string>();
  private waiting = 0;
  /** Whether there is a cursor. */
  private pointed = false;
  private bin: Bin | undefined;

  constructor(
    private readonly options: Options,
    signal: AbortSignal,
  ) {
    this.bin = options.bin;
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(this.root);
    this.sight = new IntersectionObserver((entries) => this.saw(entries), { rootMargin: "150px" });
    onTheme(() => this.redraw(), signal);
    signal.addEventListener("abort", () => this.clear());
  }

  /** Draw these panels; the plots stay where only the samples differ. */
  set(panels: readonly Panel[]): void {
    const same =
      panels.length === this.shown.length &&
      panels.every((panel, i) => {
        const old = this.shown[i]!.panel;
        return old.id === panel.id && old.lines.length === panel.lines.length && old.lines.every((line, j) => line.name === panel.lines[j]!.name);
      });
    if (same) {
      panels.forEach((panel, i) => this.renew(this.shown[i]!, panel));
      return;
    }
    this.clearPlots();
    this.shown = panels.map((panel) => this.make(panel));
    if (this.range) this.zoom(...this.range);
  }

  /** Show a stretch of time, or with null all of it. */
  zoom(from: number | null, to: number | null, silent = true): void {
    this.range = from === null || to === null ? null : [from, to];
    this.shown.forEach((shown) => this.draw(shown));
    if (!silent) this.options.zoomed?.(from, to);
  }

  /** What rates are means over. */
  means(bin: Bin): void {
    this.bin = bin;
    this.shown.forEach((shown) => this.draw(shown));
    this.options.binChanged?.(bin);
  }

  clear(): void {
    this.observer.disconnect();
    this.sight.disconnect();
    this.clearPlots();
  }

  private clearPlots(): void {
    this.shown.forEach(({ plot, root }) => {
      this.sight.unobserve(root);
      plot.destroy();
    });
    this.shown = [];
    this.root.replaceChildren();
  }

  /** Draw the present stretch of a panel's samples; of one that nobody sees, when it comes into sight. */
  private draw(shown: Shown, unseen = false): void {
    shown.stale = !shown.seen && !unseen;
    if (shown.stale) return;
    const [min, max] = this.stretch(shown.span);
    const panel = shown.rates?.fit(this.bin!, max - min, this.width());
    if (panel && panel !== shown.panel && !this.take(shown, panel)) return;
    const { plot, data } = shown;
    const made = decimated(data, min, max, this.columns());
    shown.whole = made === data;
    plot.batch(() => {
      plot.setData(made, false);
      plot.setScale("x", { min, max });
    });
  }

  private stretch([first, last]: readonly [number, number]): [number, number] {
    return this.range ?? [first, Math.max(last, first + (this.options.least ?? 0))];
  }

  /** Columns of pixels. */
  private columns(): number {
    return Math.ceil(this.width() * Math.min(2, devicePixelRatio || 1));
  }

  private saw(entries: readonly IntersectionObserverEntry[]): void {
    for (const entry of entries) {
      const shown = this.shown.find(({ root }) => root === entry.target);
      if (!shown) continue;
      shown.seen = entry.isIntersecting;
      if (shown.seen && shown.stale) this.draw(shown);
    }
  }

  private redraw(): void {
    const panels = this.shown.map(({ panel, rates }) => rates?.source ?? panel);
    this.clearPlots();
    this.shown = panels.map((panel) => this.make(panel));
    if (this.range) this.zoom(...this.range);
  }

  private width(): number {
    return Math.max(240, this.root.clientWidth);
  }

  private resize(): void {
    const width = this.width();
    for (const shown of this.shown) {
      if (shown.plot.width === width) continue;
      shown.plot.setSize({ width, height: HEIGHT });
      this.draw(shown);
    }
  }

  private make(source: Panel): Shown {
    const span = spanOf(source);
    const [from, to] = this.stretch(span);
    const rates = this.bin === undefined ? null : Rates.of(source, (bin) => this.means(bin));
    const panel = rates?.fit(this.bin!, to - from, this.width()) ?? source;
    const { data, factor, unit } = aligned(panel);
    const levels: Level[] = scaledLevels(panel, factor);
    const levelsSaid = h("li", { class: "levels muted" });
    const few = panel.lines.length <= FEW;
    const axisUnit = unit ? ` (${unit})` : "";
    const heading = fresh("panel");
    const first = decimated(data, from, to, this.columns());
    const place = h("div", {
      class: "plot",
      tabindex: 0,
      role: "application",
      "aria-labelledby": heading,
      "aria-description": "Arrow keys move the cursor, with Shift ten samples; plus and minus zoom, 0 shows all.",
    });
    const plot = chart(panel, first, place, {
      width: this.width(),
      key: this.key,
      shows: (line) => !this.hidden.has(`${panel.id} ${line.name}`),
      levels,
      zoomed: (from, to) => this.zoom(from, to, false),
      moved: (u) => this.moved(u),
    });
    plot.setScale("x", { min: from, max: to });
    plot.over.addEventListener("dblclick", () => this.zoom(null, null, false));
    const time = h("span", { class: "muted at" });
    const values: HTMLElement[] = [];
    const legend = h("ul", { class: few ? "legend" : "legend many" });
    const shown: Shown = { rates, panel, span, plot, root: h("figure", { class: "panel" }), place, values, time, factor, levels, levelsSaid, data, seen: true, stale: false, whole: first === data };
    panel.lines.forEach((line, i) => {
      const value = h("b", { class: "value" });
      values.push(value);
      const hidden = this.hidden.has(`${panel.id} ${line.name}`);
      const button = h(
        "button",
        {
          type: "button",
          class: "line",
          "aria-pressed": hidden ? "false" : "true",
          title: "Show or hide this line",
          click: () => this.toggle(shown, i, button),
        },
        swatch(line, few),
        line.name,
        " ",
        value,
      );
      put(legend, h("li", {}, button));
    });
    put(legend, levelsSaid);
    this.level(shown, unit);
    const menu = pictureMenu(() => this.picture(shown));
    put(
      shown.root,
      h("figcaption", {}, h("h2", { class: "part", id: heading }, panel.title, h("small", {}, axisUnit)), rates?.head, time, menu),
      place,
      legend,
      rates?.note,
      h("p", { class: "origin" }, this.origin(rates)),
    );
    place.addEventListener("keydown", (event) => this.pressed(event, shown));
    put(this.root, shown.root);
    this.sight.observe(shown.root);
    return shown;
  }

  private renew(shown: Shown, source: Panel): void {
    shown.span = spanOf(source);
    shown.rates?.renew(source);
    if (shown.rates || this.take(shown, source)) this.draw(shown);
  }

  /** Other samples of the same lines; false if the panel was made anew, in another unit. */
  private take(shown: Shown, panel: Panel): boolean {
    const { data, factor, unit } = aligned(panel);
    shown.panel = panel;
    shown.data = data;
    if (factor !== shown.factor) {
      this.redrawOne(shown);
      return false;
    }
    this.level(shown, unit);
    const origin = shown.root.querySelector(".origin:last-child");
    if (origin) origin.textContent = this.origin(shown.rates);
    return true;
  }

  /** The levels of the present panel; the plot holds the same list. */
  private level({ panel, levels, levelsSaid, factor }: Shown, unit: string): void {
    levels.splice(0, levels.length, ...scaledLevels(panel, factor));
    levelsSaid.hidden = !levels.length;
    write(levelsSaid, levels.length ? `┄ ${inWords(levels)}${unit ? ` ${unit}` : ""}` : "");
  }

  private origin(rates: Rates | null): string {
    return [this.options.origin(), rates?.said].filter(Boolean).join(" · ");
  }

  private redrawOne(shown: Shown): void {
    const i = this.shown.indexOf(shown);
    const made = this.make(shown.rates?.source ?? shown.panel);
    this.sight.unobserve(shown.root);
    shown.plot.destroy();
    shown.root.replaceWith(made.root);
    this.shown[i] = made;
    if (this.range) this.zoom(...this.range);
  }

  private toggle(shown: Shown, i: number, button: HTMLElement): void {
    const name = `${shown.panel.id} ${shown.panel.lines[i]!.name}`;
    const show = this.hidden.delete(name);
    if (!show) this.hidden.add(name);
    button.setAttribute("aria-pressed", String(show));
    shown.plot.setSeries(i + 1, { show });
  }

  /** The legends follow the cursor, at most once a frame. */
  private moved(u: uPlot): void {
    const shown = this.shown.find(({ plot }) => plot === u);
    this.pointed = shown !== undefined && sampleAt(shown) !== null;
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      for (const each of this.shown) if (each.seen) this.label(each);
    });
  }

  private label(shown: Shown): void {
    const { panel, values, time, data } = shown;
    const index = this.pointed ? sampleAt(shown) : null;
    write(time, index === null ? "" : `at ${number(data[0][index]!, 6)} s`);
    panel.lines.forEach((_, i) => {
      const x = index === null ? null : data[i + 1]![index];
      write(values[i]!, x === null || x === undefined ? "" : number(x, 4));
    });
  }

  private pressed(event: KeyboardEvent, shown: Shown): void {
    const times = shown.data[0];
    const [min, max] = this.stretch(shown.span);
    const step = event.shiftKey ? 10 : 1;
    const now = sampleAt(shown) ?? firstFrom(times, (min + max) / 2);
    switch (event.key) {
      case "ArrowLeft":
        this.point(shown, now - step);
        break;
      case "ArrowRight":
        this.point(shown, now + step);
        break;
      case "Home":
        this.point(shown, firstFrom(times, min));
        break;
      case "End":
        this.point(shown, firstFrom(times, max));
        break;
      case "+":
      case "=":
      case "-": {
        const middle = times[now] ?? (min + max) / 2;
        const half = ((max - min) / 2) * (event.key === "-" ? 2 : 0.5);
        const from = Math.max(times[0]!, middle - half);
        const to = Math.min(times[times.length - 1]!, middle + half);
        this.zoom(from, to, false);
        break;
      }
      case "0":
        this.zoom(null, null, false);
        break;
      default:
        return;
    }
    event.preventDefault();
  }

  private point(shown: Shown, index: number): void {
    const { panel, data } = shown;
    const i = Math.max(0, Math.min(data[0].length - 1, index));
    const at = data[0][i]!;
    // What the mouse does is passed on by uPlot; what the keys do is not.
    for (const { plot, seen } of this.shown) if (seen) plot.setCursor({ left: plot.valToPos(at, "x"), top: plot.height / 2 });
    const said = panel.lines.slice(0, 8).map((line, j) => `${line.name} ${quantity((data[j + 1]![i] ?? NaN) * shown.factor, panel.unit)}`);
    tell(`${number(at, 6)} s: ${said.join(", ")}`);
  }

  private picture(shown: Shown): Picture {
    const { panel, plot, data } = shown;
    if (shown.stale) this.draw(shown, true);
    const { min = 0, max = 1 } = plot.scales["x"]!;
    const [, unit] = scale(panel.unit, shown.factor);
    const lines = panel.lines
      .map((line, i) => ({ line, values: data[i + 1]!, show: plot.series[i + 1]!.show !== false }))
      .filter(({ show }) => show)
      .map(({ line, values }) => ({
        name: line.name,
        colour: colour(line.n),
        dash: panel.lines.length <= FEW ? dash(line.n) : [],
        faint: line.before === true,
        xs: data[0],
        ys: values,
      }));
    return {
      kind: "lines",
      title: panel.title,
      x: { title: "time (s)", min, max },
      y: { title: unit || panel.title, min: plot.scales["y"]!.min ?? 0, max: plot.scales["y"]!.max ?? 1 },
      lines,
      levels: merged(shown.levels),
      origin: this.origin(shown.rates),
      name: [...this.options.names(), panel.id],
    };
  }
}

/** The sample nearest to a panel's cursor, of all of them; null where there is no cursor. */
function sampleAt({ plot, data, whole }: Shown): number | null {
  const { idx, left } = plot.cursor;
  if (idx === null || idx === undefined || left === undefined || left < 0) return null;
  if (whole) return idx;
  const times = data[0];
  const at = plot.posToVal(left, "x");
  const after = Math.min(times.length - 1, firstFrom(times, at));
  return after > 0 && at - times[after - 1]! < times[after]! - at ? after - 1 : after;
}

function scaledLevels({ levels = [] }: Panel, factor: number): Level[] {
  return levels.map(({ name, value }) => ({ name, value: value / factor }));
}

function spanOf({ lines }: Panel): [number, number] {
  if (!lines.length) return [0, 1];
  const times = lines.map(({ t }) => t).filter((t) => t.length);
  return [Math.min(...times.map((t) => t[0]!)), Math.max(...times.map((t) => t[t.length - 1]!))];
}

function write(into: HTMLElement, text: string): void {
  if (into.textContent !== text) into.textContent = text;
}
