// Several runs side by side: a small picture for each, same quantity, same scales, headed by its schemes.

import { get, type Packed } from "./api";
import { h, put } from "./dom";
import { estimated, scale } from "./format";
import type { Entry } from "./list";
import { panels, type Figures, type Panel } from "./panels";
import { choice, heading, type Place } from "./parts";
import { originOf, type Run } from "./run";
import { merged, reach } from "./levels";
import { linesSvg, pictureMenu, type LinePicture } from "./save";
import { address } from "./state";
import { Table, type Column } from "./table";
import { colour, dash, onTheme } from "./theme";

interface One {
  id: string;
  label: string;
  run: Run;
  panels: Panel[];
  seed: number;
}

/** As many lines of a panel are told apart in a small picture. */
const FEW = 14;

export async function compare({ root, query, signal }: Place): Promise<void> {
  const ids = (query["ids"] ?? "").split("|").filter(Boolean);
  const { head: index } = await get<{ entries: Entry[] }>("index");
  const entries = new Map(index.entries.map((entry) => [entry.id, entry]));
  const all: One[] = await Promise.all(
    ids.map(async (id) => {
      const { head: run } = await get<Run>("run", { id });
      const seed = run.seeds.includes(Number(query["seed"])) ? Number(query["seed"]) : run.seeds[0]!;
      const found: Packed<Figures> = await get<Figures>("series", { id, seed });
      const schemes = (entries.get(id)?.schemes ?? []).join(" + ");
      return { id, label: schemes ? `${schemes} (${id})` : id, run, panels: panels(found), seed };
    }),
  );
  document.title = "Comparison – Inprofile";
  const kinds = new Map(all.flatMap((one) => one.panels).map((panel) => [panel.id, panel.title]));
  const wanted = query["panel"] && kinds.has(query["panel"]) ? query["panel"] : ([...kinds.keys()].find((id) => id.startsWith("queue ")) ?? [...kinds.keys()][0]);
  const metrics = [...new Set(all.flatMap((one) => Object.keys(one.run.metrics)))];
  const columns: Column<string>[] = [
    { head: "Metric [95 %]", value: (name) => name },
    ...all.map((one) => ({
      head: one.label,
      value: (name: string) => one.run.metrics[name]?.mean ?? null,
      show: (name: string) => {
        const m = one.run.metrics[name];
        return m ? estimated(m.mean, m.ci95, m.unit) : "–";
      },
      numeric: true,
    })),
  ];
  const space = h("div", { class: "multiples small" });
  const seeds = [...new Set(all.flatMap((one) => one.run.seeds))].slice(0, 100);
  const set = (changes: Record<string, string>): void => {
    location.hash = address("compare", { ...query, ...changes });
  };
  put(
    root,
    heading("Comparison", `${all.length} runs`),
    h(
      "div",
      { class: "bar" },
      kinds.size ? choice("Quantity", [...kinds], wanted ?? "", (value) => set({ panel: value })) : null,
      choice("Seed", seeds.map((s) => [String(s), String(s)]), String(all[0]?.seed ?? ""), (value) => set({ seed: value })),
    ),
    space,
    h("h2", {}, "Metrics"),
    new Table(columns, metrics, { caption: "Metrics of each run" }).root,
  );
  const draw = (): void => {
    const shown = all.map((one) => ({ one, panel: one.panels.find((p) => p.id === wanted) }));
    let most = 0;
    let end = 0;
    for (const { panel } of shown) {
      for (const line of panel?.lines ?? []) {
        for (const v of line.v) if (v > most) most = v;
        end = Math.max(end, line.t[line.t.length - 1] ?? 0);
      }
    }
    // Levels that any of them reaches for, so that the scales stay equal.
    most = Math.max(...shown.map(({ panel }) => reach(panel?.levels ?? [], most)));
    space.replaceChildren();
    for (const { one, panel } of shown) {
      if (!panel) {
        put(space, h("figure", {}, h("h2", { class: "part" }, one.label), h("p", { class: "muted" }, "It was not sampled here.")));
        continue;
      }
      const [factor, unit] = scale(panel.unit, most);
      const picture: LinePicture = {
        kind: "lines",
        title: one.label,
        x: { title: "time (s)", min: 0, max: end || 1 },
        y: { title: unit || panel.title, min: 0, max: (most / factor) * 1.05 || 1 },
        lines: panel.lines.map((line) => ({ name: line.name, colour: colour(line.n), dash: panel.lines.length <= FEW ? dash(line.n) : [], xs: line.t, ys: Array.from(line.v, (v) => (Number.isNaN(v) ? null : v / factor)) })),
        levels: merged((panel.levels ?? []).map(({ name, value }) => ({ name, value: value / factor }))),
        legend: Math.max(...shown.map((other) => other.panel?.lines.length ?? 0)),
        origin: originOf(one.run, one.seed),
        name: [panel.title, one.label, `seed ${one.seed}`, one.run.digest.slice(0, 8)],
      };
      const drawing = h("div", { class: "svg", role: "img", "aria-label": `${panel.title}: ${one.label}` });
      drawing.innerHTML = linesSvg(picture, 420);
      put(space, h("figure", {}, h("figcaption", {}, h("h2", { class: "part" }, h("a", { href: address("run", { id: one.id, tab: "series", seed: one.seed }) }, one.label)), pictureMenu(() => picture)), drawing));
    }
  };
  draw();
  onTheme(draw, signal);
}
