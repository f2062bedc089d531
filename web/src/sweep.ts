// A sweep: curves along an axis with knees, small multiples, the means of each setting; a surface over two axes; all its runs as a table.

import { get, isFile, type Packed } from "./api";
import { h, put } from "./dom";
import { estimated, number, quantity, scale } from "./format";
import { knee } from "./knee";
import { choice, heading, tabs, type Place } from "./parts";
import { packets } from "./packets";
import { runOfSweep } from "./sweeprun";
import { escapeXml, linesSvg, originText, pictureMenu, wrapped, type LinePicture, type SavedLine } from "./save";
import { address, keepSoon } from "./state";
import type { Axis, Sweep } from "./sweepdata";
import { Table, type Column } from "./table";
import { colour, dash, look, onTheme } from "./theme";

interface Curve {
  metric: string;
  unit: string;
  mean: number;
  lo: number;
  hi: number;
  n: number;
}

const TABS: readonly [string, string][] = [
  ["curves", "Curves and means"],
  ["surface", "Surface"],
  ["runs", "Runs"],
  ["origin", "Provenance"],
];
const SHOWN = ["contracts_kept", "assurance_worst", "best_effort", "goodput", "fi", "utilisation", "delay_mean", "loss_in", "loss_out"];

export async function sweep(place: Place): Promise<void> {
  const { root, query } = place;
  const id = query["id"] ?? "";
  const found = await get<Sweep>("sweep", { id });
  const { head } = found;
  document.title = `${head.title} – Inprofile`;
  if (query["setting"] !== undefined) {
    await runOfSweep(place, head, packets);
    return;
  }
  const tab = TABS.some(([name]) => name === query["tab"]) ? query["tab"]! : "curves";
  put(root, heading(head.title, id), ...head.problems.map((text) => h("p", { class: "notice" }, text)), tabs("sweep", { id }, TABS, tab));
  if (tab === "runs") runs(place, found);
  else if (tab === "curves") {
    await curves(place, found);
    await means(place, found);
  }
  else if (tab === "surface") await surface(place, found);
  else origin(root, head);
}

function originOf(head: Sweep): string {
  return `${head.title} · ${head.seeds.length} seeds a setting at most · experiment ${head.digest.slice(0, 12)} · inprofile ${head.version}`;
}

function runs({ root, query }: Place, { head, arrays }: Packed<Sweep>): void {
  const settings = arrays[head.setting]!;
  const seeds = arrays[head.seed]!;
  const shown = head.metrics.filter((m) => SHOWN.includes(m.name)).sort((a, b) => SHOWN.indexOf(a.name) - SHOWN.indexOf(b.name));
  const only = query["of"] === undefined ? null : Number(query["of"]);
  const rows = Array.from(settings, (_, i) => i).filter((i) => only === null || settings[i] === only);
  const columns: Column<number>[] = [
    {
      head: "Run",
      value: (i) => i,
      show: (i) => h("a", { href: address("sweep", { id: head.id, setting: settings[i]!, seed: seeds[i]! }) }, `${settings[i]}, seed ${seeds[i]}`),
    },
    ...head.axes.map((axis) => {
      const values = axis.values === null ? null : arrays[axis.values]!;
      return { head: axis.short, value: (i: number) => (values ? values[settings[i]!]! : axis.texts[settings[i]!]!), show: (i: number) => axis.texts[settings[i]!]!, numeric: values !== null };
    }),
    ...shown.map((metric) => {
      const values = arrays[metric.values]!;
      return {
        head: metric.name.replaceAll("_", " "),
        value: (i: number) => (Number.isNaN(values[i]!) ? null : values[i]!),
        show: (i: number) => quantity(values[i]!, metric.unit, 4),
        numeric: true,
      };
    }),
  ];
  const count = h("span", { class: "muted" });
  const table = new Table(columns, rows, {
    caption: "Runs",
    text: (i) => head.axes.map((axis) => `${axis.short}=${axis.texts[settings[i]!]!}`).join(" ") + ` seed=${seeds[i]}`,
    changed: (n) => {
      count.textContent = `${n.toLocaleString("en")} of ${rows.length.toLocaleString("en")} runs, ${head.settings.toLocaleString("en")} settings`;
    },
  });
  const filter = h("input", { type: "search", placeholder: `${head.axes[0]?.short ?? "seed"}=${head.axes[0]?.texts[0] ?? 1}`, value: query["find"] ?? "" });
  filter.addEventListener("input", () => {
    table.filter(filter.value);
    keepSoon({ find: filter.value });
  });
  if (filter.value) table.filter(filter.value);
  const whose = only === null ? null : h("p", {}, `Runs of setting ${only}: ${settingOf(head, only)}. `, h("a", { href: address("sweep", { id: head.id, tab: "runs" }) }, "All runs"));
  put(root, whose, h("div", { class: "bar" }, h("label", { class: "field" }, h("span", {}, "Filter"), filter), count), table.root, isFile ? null : h("p", { class: "muted" }, "A run's link makes it again, with the same seed, to look at its samples and packets."));
}

function settingOf(head: Sweep, setting: number): string {
  return head.axes.map((axis) => `${axis.short} ${axis.texts[setting] ?? "?"}`).join(", ");
}

/** The mean of each metric at each setting, with its interval; a setting's number opens its runs. */
async function means({ root }: Place, { head, arrays }: Packed<Sweep>): Promise<void> {
  const { head: found, arrays: figures } = await get<{ curves: Curve[] }>("means", { id: head.id });
  const columns: Column<number>[] = [
    { head: "Setting", value: (s) => s, show: (s) => h("a", { href: address("sweep", { id: head.id, tab: "runs", of: s }), "aria-label": `Runs of setting ${s}` }, String(s)), numeric: true },
    ...head.axes.map((axis) => {
      const values = axis.values === null ? null : arrays[axis.values]!;
      return { head: axis.short, value: (s: number) => (values ? values[s]! : axis.texts[s]!), show: (s: number) => axis.texts[s]!, numeric: values !== null };
    }),
    ...found.curves.map((curve) => ({
      head: curve.metric.replaceAll("_", " "),
      value: (s: number) => gap(figures[curve.mean]![s]!),
      show: (s: number) => (Number.isNaN(figures[curve.mean]![s]!) ? "–" : estimated(figures[curve.mean]![s]!, [gap(figures[curve.lo]![s]!), gap(figures[curve.hi]![s]!)], curve.unit)),
      numeric: true,
    })),
  ];
  const settings = Array.from({ length: head.settings }, (_, s) => s);
  put(
    root,
    h("h2", {}, "Means"),
    h("p", { class: "muted" }, `Mean of each setting's runs [95 %], ${head.seeds.length} seeds at most. A setting's number opens its runs.`),
    new Table(columns, settings, { caption: "Means of each setting", text: (s) => settingOf(head, s) }).root,
  );
}

/** The curve of a metric, one for each combination of the other axes' values. */
interface Line {
  /** Values of the axes that tell lines apart. */
  name: string;
  /** The value of the axis that tells panels apart. */
  panel: string;
  at: number[];
}

async function curves({ root, query, signal }: Place, found: Packed<Sweep>): Promise<void> {
  const { head, arrays } = found;
  const metric = named(head, query["metric"]);
  const numeric = head.axes.filter((axis) => axis.values !== null);
  const xAxis = head.axes.find((axis) => axis.key === query["x"]) ?? numeric.sort((a, b) => distinct(b).length - distinct(a).length)[0] ?? head.axes[0];
  if (!xAxis) return;
  const others = head.axes.filter((axis) => axis !== xAxis);
  const facet = others.find((axis) => axis.key === query["by"]) ?? (query["by"] === "none" ? undefined : others.find((axis) => axis.values === null && axis !== xAxis));
  const { head: curve, arrays: figures } = await get<Curve>("curve", { id: head.id, metric });
  const [mean, lo, hi] = [figures[curve.mean]!, figures[curve.lo]!, figures[curve.hi]!];
  const set = (changes: Record<string, string>): void => {
    location.hash = address("sweep", { ...query, tab: "curves", ...changes });
  };
  const space = h("div", { class: facet ? "multiples" : "" });
  put(
    root,
    h(
      "div",
      { class: "bar" },
      choice("Metric", head.metrics.map((m) => [m.name, m.name]), metric, (value) => set({ metric: value })),
      choice("Along", head.axes.map((a) => [a.key, a.short]), xAxis.key, (value) => set({ x: value })),
      others.length ? choice("A panel for each", [["none", "–"], ...others.map((a): [string, string] => [a.key, a.short])], facet?.key ?? "none", (value) => set({ by: value })) : null,
    ),
    space,
  );
  const draw = (): void => {
    const numbers = xAxis.values === null ? null : arrays[xAxis.values]!;
    const words = numbers ? undefined : distinct(xAxis);
    const x = (setting: number): number => (numbers ? numbers[setting]! : words!.indexOf(xAxis.texts[setting]!));
    const lines = new Map<string, Line>();
    for (let s = 0; s < head.settings; s++) {
      if (Number.isNaN(mean[s]!)) continue;
      const panel = facet ? facet.texts[s]! : "";
      const name = others.filter((a) => a !== facet).map((a) => `${a.short} ${a.texts[s]!}`).join(", ") || metric;
      const id = `${panel}\u0000${name}`;
      const line = lines.get(id) ?? { name, panel, at: [] };
      lines.set(id, line);
      line.at.push(s);
    }
    const all = [...lines.values()];
    all.forEach((line) => line.at.sort((a, b) => x(a) - x(b)));
    const most = Math.max(...all.flatMap((line) => line.at.map((s) => Math.abs(hi[s]! || mean[s]!))), 0);
    const [factor, unit] = scale(curve.unit, most);
    const [xFactor, xUnit] = numbers ? scale(xAxis.unit, Math.max(...numbers)) : [1, ""];
    const top = Math.max(...all.flatMap((line) => line.at.map((s) => (Number.isNaN(hi[s]!) ? mean[s]! : hi[s]!)))) / factor;
    const xs = all.flatMap((line) => line.at.map((s) => x(s) / xFactor));
    const [xMin, xMax] = [Math.min(...xs), Math.max(...xs)];
    const air = (xMax - xMin || 1) * 0.04;
    const names = [...new Set(all.map((line) => line.name))];
    space.replaceChildren();
    for (const panel of [...new Set(all.map((line) => line.panel))]) {
      const own = all.filter((line) => line.panel === panel);
      const bends: string[] = [];
      const made: SavedLine[] = own.map((line) => {
        const n = names.indexOf(line.name);
        const lx = line.at.map((s) => x(s) / xFactor);
        const ly = line.at.map((s) => mean[s]! / factor);
        const bend = numbers ? knee(lx, ly) : null;
        if (bend !== null) bends.push(`${line.name}: ${xAxis.texts[line.at[bend]!]}`);
        return { name: line.name, colour: colour(n), dash: dash(n), marks: true, xs: lx, ys: ly, lo: line.at.map((s) => gap(lo[s]! / factor)), hi: line.at.map((s) => gap(hi[s]! / factor)), ...(bend === null ? {} : { knee: bend }) };
      });
      const title = `${metric}${panel ? `, ${facet!.short} ${panel}` : ""}`;
      const picture: LinePicture = {
        kind: "lines",
        title,
        x: { title: `${xAxis.short}${xUnit ? ` (${xUnit})` : ""}`, min: xMin - air, max: xMax + air, ...(words ? { words } : {}) },
        y: { title: `${metric}${unit ? ` (${unit})` : ""}`, min: 0, max: (top || 1) * 1.06 },
        lines: made,
        origin: originOf(head),
        name: [head.title, title, "along", xAxis.short, head.digest.slice(0, 8)],
      };
      const figure = h("figure", { class: "panel drawn" }, h("figcaption", {}, h("h2", { class: "part" }, title), pictureMenu(() => picture)));
      const drawing = h("div", { class: "svg", role: "img", "aria-label": `${title} along ${xAxis.short}; the table of runs has its figures.` });
      drawing.innerHTML = linesSvg(picture, Math.min(760, space.clientWidth || innerWidth - 40));
      put(
        figure,
        drawing,
        bends.length ? h("p", { class: "muted" }, `Bends (ringed) at ${bends.slice(0, 6).join("; ")}${bends.length > 6 ? " …" : ""}`) : null,
        table(own.flatMap((line) => line.at.map((s) => [line.name, xAxis.texts[s]!, estimated(mean[s]!, [gap(lo[s]!), gap(hi[s]!)], curve.unit)]))),
      );
      put(space, figure);
    }
  };
  draw();
  onTheme(draw, signal);
}

function gap(x: number): number | null {
  return Number.isNaN(x) ? null : x;
}

/** The figures of a picture for who cannot see it. */
function table(rows: string[][]): HTMLElement {
  return h(
    "details",
    {},
    h("summary", { class: "muted" }, "As a table"),
    h("div", { class: "scroll" }, h("table", {}, h("tbody", {}, ...rows.map(([name, at, value]) => h("tr", {}, h("th", { scope: "row" }, name!), h("td", {}, at!), h("td", { class: "n" }, value!)))))),
  );
}

function distinct(axis: Axis): string[] {
  return [...new Set(axis.texts)];
}

function named(head: Sweep, wanted: string | undefined): string {
  const names = head.metrics.map((m) => m.name);
  if (wanted && names.includes(wanted)) return wanted;
  return SHOWN.find((name) => names.includes(name)) ?? names[0] ?? "goodput";
}

async function surface({ root, query, signal }: Place, found: Packed<Sweep>): Promise<void> {
  const { head, arrays } = found;
  if (head.axes.length < 2) {
    put(root, h("p", { class: "notice" }, "A surface needs two axes; this sweep has one. Its curves show all there is."));
    return;
  }
  const metric = named(head, query["metric"]);
  const x = head.axes.find((axis) => axis.key === query["x"]) ?? head.axes[0]!;
  const y = head.axes.find((axis) => axis.key === query["y"] && axis !== x) ?? head.axes.find((axis) => axis !== x)!;
  const { head: curve, arrays: figures } = await get<Curve>("curve", { id: head.id, metric });
  const mean = figures[curve.mean]!;
  const set = (changes: Record<string, string>): void => {
    location.hash = address("sweep", { ...query, tab: "surface", ...changes });
  };
  const others = head.axes.filter((axis) => axis !== x && axis !== y);
  const space = h("div");
  put(
    root,
    h(
      "div",
      { class: "bar" },
      choice("Metric", head.metrics.map((m) => [m.name, m.name]), metric, (value) => set({ metric: value })),
      choice("Across", head.axes.map((a) => [a.key, a.short]), x.key, (value) => set({ x: value })),
      choice("Up", head.axes.filter((a) => a !== x).map((a) => [a.key, a.short]), y.key, (value) => set({ y: value })),
    ),
    others.length ? h("p", { class: "muted" }, `Each field is the mean over all values of ${others.map((a) => a.short).join(", ")}.`) : null,
    space,
  );
  const order = (axis: Axis): string[] => {
    const numbers = axis.values === null ? null : arrays[axis.values]!;
    const texts = distinct(axis);
    return numbers ? texts.sort((a, b) => numbers[axis.texts.indexOf(a)]! - numbers[axis.texts.indexOf(b)]!) : texts;
  };
  const columns = order(x);
  const rows = order(y).reverse();
  const sums = new Map<string, [number, number]>();
  for (let s = 0; s < head.settings; s++) {
    if (Number.isNaN(mean[s]!)) continue;
    const id = `${x.texts[s]}\u0000${y.texts[s]}`;
    const [sum, n] = sums.get(id) ?? [0, 0];
    sums.set(id, [sum + mean[s]!, n + 1]);
  }
  const at = (column: string, row: string): number | null => {
    const cell = sums.get(`${column}\u0000${row}`);
    return cell ? cell[0] / cell[1] : null;
  };
  const values = columns.flatMap((c) => rows.map((r) => at(c, r))).filter((v): v is number => v !== null);
  if (columns.length * rows.length > 4 * sums.size) {
    put(space, h("p", { class: "notice" }, "The settings are scattered, not a grid: most fields are empty. The curves show them all."));
  }
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const [factor, unit] = scale(curve.unit, Math.max(Math.abs(least), Math.abs(most)));
  const title = `${metric}${unit ? ` (${unit})` : ""}`;
  // Numbers of one unit are labelled without it: it is in the axis's name.
  const labels = (axis: Axis, texts: string[]): [string, string[]] => {
    const numbers = axis.values === null ? null : arrays[axis.values]!;
    if (!numbers) return [axis.short, texts];
    const own = texts.map((text) => numbers[axis.texts.indexOf(text)]!);
    const [step, name] = scale(axis.unit, Math.max(...own.map(Math.abs)));
    return [`${axis.short}${name ? ` (${name})` : ""}`, own.map((v) => number(v / step, 3))];
  };
  const [xName, columnLabels] = labels(x, columns);
  const [yName, rowLabels] = labels(y, rows);
  const svg = (titled: boolean): string => {
    const style = look();
    const left = 26 + 7.2 * Math.max(...rowLabels.map((r) => r.length));
    const wide = Math.max(44, Math.min(96, (940 - left) / columns.length));
    const high = Math.max(24, Math.min(44, 460 / rows.length));
    const width = left + wide * columns.length + 14;
    const above = titled ? 56 : 32;
    const origin = wrapped(originOf(head), (width - 28) / 5.4);
    const height = above + high * rows.length + 66 + 13 * (origin.length - 1);
    const parts = [
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${escapeXml(style.font.replaceAll('"', "'"))}" font-size="12"><title>${escapeXml(title)}</title><desc>${escapeXml(originOf(head))}</desc><rect width="100%" height="100%" fill="${style.back}"/>`,
      titled ? `<text x="14" y="22" font-size="15" font-weight="600" fill="${style.text}">${escapeXml(title)}</text>` : "",
      `<text x="14" y="${above - 12}" fill="${style.muted}">${escapeXml(`${yName} ↑`)}</text>`,
    ];
    rows.forEach((row, j) => {
      const top = above + j * high;
      parts.push(`<text x="${left - 8}" y="${top + high / 2 + 4}" text-anchor="end" fill="${style.muted}">${escapeXml(rowLabels[j]!)}</text>`);
      columns.forEach((column, i) => {
        const v = at(column, row);
        const share = v === null || most === least ? 0.5 : (v - least) / (most - least);
        const fill = v === null ? "none" : `hsl(212 ${30 + 45 * share}% ${94 - 62 * share}%)`;
        const ink = share > 0.62 ? "#ffffff" : "#10151d";
        parts.push(
          `<rect x="${left + i * wide}" y="${top}" width="${wide - 1}" height="${high - 1}" fill="${fill}" stroke="${v === null ? style.line : "none"}"/>`,
          v === null ? "" : `<text x="${left + (i + 0.5) * wide}" y="${top + high / 2 + 4}" text-anchor="middle" fill="${ink}">${number(v / factor, 3)}</text>`,
        );
      });
    });
    const base = above + rows.length * high;
    // As many labels as have room.
    const every = Math.ceil((8 + 7 * Math.max(...columnLabels.map((c) => c.length))) / wide);
    columnLabels.forEach((label, i) => {
      if (i % every === 0) parts.push(`<text x="${left + (i + 0.5) * wide}" y="${base + 16}" text-anchor="middle" fill="${style.muted}">${escapeXml(label)}</text>`);
    });
    parts.push(`<text x="${left}" y="${base + 38}" fill="${style.muted}">${escapeXml(`${xName} →`)}</text>${originText(origin, height, style.muted)}</svg>`);
    return parts.join("");
  };
  const body = columns.flatMap((c) => rows.map((r): (string | number | null)[] => [c, r, at(c, r)]));
  const menu = pictureMenu(() => ({ kind: "drawn", title, origin: originOf(head), name: [head.title, metric, "over", x.short, y.short, head.digest.slice(0, 8)], svg: () => svg(true), head: [x.key, y.key, `${metric}${curve.unit === "1" ? "" : ` (${curve.unit})`}`], rows: body }));
  const drawing = h("div", { class: "svg scroll", role: "img", tabindex: 0, "aria-label": `${title} over ${x.short} and ${y.short}; as a table below.` });
  const draw = (): void => {
    drawing.innerHTML = svg(false);
  };
  draw();
  onTheme(draw, signal);
  put(space, h("figure", {}, h("figcaption", {}, h("h2", { class: "part" }, title), menu), drawing, table(body.map(([c, r, v]) => [String(c), String(r), v === null ? "–" : quantity(v as number, curve.unit)]))));
}

function origin(root: HTMLElement, head: Sweep): void {
  const rows: [string, string][] = [
    ["Experiment", head.title],
    ["SHA-256 of the experiment", head.digest],
    ["Version of Inprofile", head.version],
    ["Seeds", head.seeds.length > 12 ? `${head.seeds[0]} … ${head.seeds[head.seeds.length - 1]}` : head.seeds.join(", ")],
    ["Design", head.design],
    ...head.axes.map((axis): [string, string] => [axis.key, distinct(axis).slice(0, 24).join(", ") + (distinct(axis).length > 24 ? " …" : "")]),
    ...head.set.map(([key, value]): [string, string] => [`--set ${key}`, value]),
  ];
  put(
    root,
    h("h2", {}, "Provenance"),
    h("dl", { class: "pairs" }, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    h("details", { open: true }, h("summary", {}, "The experiment as it was written"), h("pre", { tabindex: 0 }, head.text)),
  );
}
