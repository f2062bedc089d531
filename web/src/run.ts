// One result: its figures, its samples over time, its packets, what would be if, and where it comes from.

import { get, type Packed } from "./api";
import { h, put } from "./dom";
import { estimated, quantity } from "./format";
import { flows } from "./flows";
import { player } from "./player";
import { packets } from "./packets";
import { panels, usual, type Figures, type Panel } from "./panels";
import { binOf, rateChoice } from "./rates";
import { choice, heading, problem, tabs, type Effective, type Estimate, type Place, type Provenance } from "./parts";
import { address, keep, keepSoon } from "./state";
import { Table, type Column } from "./table";
import { TimePlots } from "./timeplots";
import { whatIf } from "./whatif";

interface Kept {
  name: string;
  flows: number;
  contract: number;
  kept: Estimate;
  runs_all_kept: { kept: number; of: number; ci95: [number, number] };
  assurance_ratio: Estimate;
  worst: { assurance_ratio: number; flow: string; seed: number };
  excess: Estimate;
}

export interface Run extends Provenance {
  id: string;
  problem: string;
  words: string;
  metrics: Record<string, Estimate & { point: string; header: string; values: number[]; seeds: number[] }>;
  groups: ({ group: string; flows: number } & Record<string, Estimate | string | number>)[];
  contracts: { experiment: Kept | null; groups: Kept[]; best_effort: { flows: number; throughput: Estimate; share: Estimate } | null } | null;
}

const TABS: readonly [string, string][] = [
  ["figures", "Figures"],
  ["flows", "Flows"],
  ["series", "Over time"],
  ["packets", "Packets"],
  ["queue", "Play the queue"],
  ["whatif", "What if"],
  ["origin", "Provenance"],
];

export async function run(place: Place): Promise<void> {
  const { root, query } = place;
  const id = query["id"] ?? "";
  const { head } = await get<Run>("run", { id });
  document.title = `${head.title} – Inprofile`;
  const tab = TABS.some(([name]) => name === query["tab"]) ? query["tab"]! : "figures";
  put(
    root,
    heading(head.title, id),
    head.problem ? h("p", { class: "notice" }, head.problem) : null,
    tabs("run", kept(query), TABS, tab),
  );
  if (tab === "figures") figures(root, head);
  else if (tab === "flows") await flows(place, id);
  else if (tab === "series") await series(place, head);
  else if (tab === "packets") await packets(place, head, (seed) => originOf(head, seed));
  else if (tab === "queue") await player(place, head);
  else if (tab === "whatif") await whatIf(place, head);
  else origin(root, head);
}

/** What all tabs share: the run, its seed, the stretch of time. */
export function kept(query: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(query).filter(([key]) => ["id", "setting", "seed", "from", "to"].includes(key)));
}

/** Said below each picture of a run. */
export function originOf(head: Provenance, seed: number | string, more = ""): string {
  return `${head.title} · seed ${seed}${more} · experiment ${head.digest.slice(0, 12)} · inprofile ${head.version}${head.live ? ", real hosts" : ""}`;
}

function figures(root: HTMLElement, head: Run): void {
  const rows = Object.entries(head.metrics);
  const metrics = new Table<(typeof rows)[number]>(
    [
      { head: "Metric", value: ([name]) => name },
      { head: "Mean [95 %]", value: ([, m]) => m.mean, show: ([, m]) => estimated(m.mean, m.ci95, m.unit), numeric: true },
      { head: "Runs", value: ([, m]) => m.n, numeric: true },
      { head: "At", value: ([, m]) => m.point },
      { head: "Counts", value: ([, m]) => m.header },
    ],
    rows,
    { caption: "Metrics" },
  );
  const { measure } = head.effective;
  const contracts = head.contracts;
  const worst = contracts?.experiment?.worst ?? contracts?.groups[0]?.worst;
  const short = worst && worst.assurance_ratio < 1 ? h("a", { href: address("run", { id: head.id, tab: "flows", flow: worst.flow }) }, `Why ${worst.flow} fell short`) : null;
  put(root, h("p", { class: "lead" }, head.words || null, short ? "\n" : null, short));
  if (contracts) {
    const kept = [...contracts.groups, ...(contracts.groups.length > 1 && contracts.experiment ? [contracts.experiment] : [])];
    const columns: Column<Kept>[] = [
      { head: "Contracts", value: (k) => k.name },
      { head: "Flows", value: (k) => k.flows, numeric: true },
      { head: "Kept [95 %]", value: (k) => k.kept.mean, show: (k) => percent(k.kept), numeric: true },
      { head: "Runs, all kept", value: (k) => k.runs_all_kept.kept, show: (k) => `${k.runs_all_kept.kept} of ${k.runs_all_kept.of}`, numeric: true },
      { head: "Assurance ratio", value: (k) => k.assurance_ratio.mean, show: (k) => estimated(k.assurance_ratio.mean, k.assurance_ratio.ci95, "1"), numeric: true },
      { head: "Worst", value: (k) => k.worst.assurance_ratio, show: (k) => `${quantity(k.worst.assurance_ratio, "1", 3)} (${k.worst.flow}, seed ${k.worst.seed})`, numeric: true },
      { head: "Excess", value: (k) => k.excess.mean, show: (k) => quantity(k.excess.mean, "bit/s", 3), numeric: true },
    ];
    put(root, h("h2", {}, "Contracts"), new Table(columns, kept, { caption: "Contracts kept, by group" }).root);
    const free = contracts.best_effort;
    if (free) put(root, h("p", {}, `Best effort: ${free.flows} flows get ${estimated(free.throughput.mean, free.throughput.ci95, "bit/s")}, ${percent(free.share)} of all.`));
  }
  const names = Object.keys(head.groups[0] ?? {}).filter((name) => name !== "group" && name !== "flows");
  const inPackets = (name: string): boolean => (head.groups[0]![name] as Estimate).unit === "packets";
  const groups: Column<Run["groups"][number]>[] = [
    { head: "Group (a flow)", value: (g) => g.group },
    { head: "Flows", value: (g) => g.flows, numeric: true },
    ...names.map((name) => ({
      head: `${name === "timeouts" ? "RTOs" : name.replaceAll("_", " ").replace(/ in$/, " IN").replace(/ out$/, " OUT")}${inPackets(name) ? " (packets)" : ""}`,
      value: (g: Run["groups"][number]) => (g[name] as Estimate).mean,
      show: (g: Run["groups"][number]) => {
        const e = g[name] as Estimate;
        return estimated(e.mean, e.ci95, inPackets(name) ? "1" : e.unit);
      },
      numeric: true,
    })),
  ];
  put(
    root,
    h("h2", {}, "Groups of flows"),
    new Table(groups, head.groups, { caption: "What a flow of each group got" }).root,
    h("h2", {}, "Metrics"),
    h("p", { class: "muted" }, `Measured from ${measure.from} to ${measure.to}. Throughput and goodput count data in order: what waits for a retransmission counts when that arrives, so that a window may have more than the link has sent in it.`),
    metrics.root,
  );
}

function percent(e: Estimate): string {
  return estimated(100 * e.mean, e.ci95.map((x) => x && 100 * x), "%");
}

async function series(place: Place, head: Run): Promise<void> {
  const { root, query } = place;
  const seed = Number(query["seed"] ?? head.seeds[0]);
  const found = await get<Figures>("series", { id: head.id, seed });
  const chooser = choice("Seed", head.seeds.map((s) => [String(s), String(s)]), String(seed), (value) => {
    location.hash = address("run", { ...query, seed: value });
  });
  if (!found.head.lines.length) {
    put(
      root,
      h("div", { class: "bar" }, chooser),
      problem('This result has no samples. Add to the experiment [[monitors]] with queue = "…" or flows = "…" and every = "100 ms", and run it again; the tab "What if" samples by itself.'),
    );
    return;
  }
  showSeries(place, found, {
    before: [chooser],
    origin: () => originOf(head, seed),
    names: [head.title, `seed ${seed}`, head.digest.slice(0, 8)],
  });
}

/** All panels of a run, with what chooses among them. */
export function showSeries(
  { root, query, signal }: Place,
  found: Packed<Figures>,
  options: { before: HTMLElement[]; origin: () => string; names: (string | number)[] },
): void {
  const all = panels(found);
  const chosen = new Set((query["panels"]?.split("|") ?? usual(all)).filter((id) => all.some((p) => p.id === id)));
  let words = (query["flows"] ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const rates = rateChoice(all, query["bin"], (bin) => plots.means(bin));
  const plots = new TimePlots(
    {
      origin: options.origin,
      names: () => options.names,
      zoomed: (from, to) => keepSoon({ from: from?.toPrecision(8), to: to?.toPrecision(8) }),
      bin: binOf(query["bin"]),
      binChanged: (bin) => {
        rates?.set(bin);
        keep({ bin: bin === "auto" ? null : String(bin) });
      },
    },
    signal,
  );
  const draw = (): void => {
    const shown = all.filter((p) => chosen.has(p.id)).map((p) => narrowed(p, words));
    plots.set(shown.filter((p) => p.lines.length));
  };
  const chips = h("fieldset", { class: "chips" }, h("legend", {}, "Panels"));
  for (const panel of all) {
    const box = h("input", { type: "checkbox", checked: chosen.has(panel.id) });
    box.addEventListener("change", () => {
      if (box.checked) chosen.add(panel.id);
      else chosen.delete(panel.id);
      keep({ panels: [...chosen].join("|") });
      draw();
    });
    put(chips, h("label", {}, box, h("span", {}, panel.title)));
  }
  const filter = h("input", { type: "search", placeholder: "assured.0 assured.3", value: query["flows"] ?? "" });
  filter.addEventListener("input", () => {
    words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    keepSoon({ flows: filter.value });
    draw();
  });
  const reset = h("button", { type: "button", class: "small", click: () => plots.zoom(null, null, false) }, "All of the time");
  put(root, h("div", { class: "bar" }, ...options.before, h("label", { class: "field" }, h("span", {}, "Flows"), filter), rates?.root, reset), chips, plots.root);
  draw();
  if (query["from"] && query["to"]) plots.zoom(Number(query["from"]), Number(query["to"]));
}

/** Lines whose name has one of the words; where none has, all: the panel is of something else. */
function narrowed(panel: Panel, words: string[]): Panel {
  if (!words.length) return panel;
  const lines = panel.lines.filter((line) => words.some((word) => line.name.toLowerCase().includes(word)));
  return { ...panel, lines: lines.length || panel.id.includes(" ") ? (lines.length ? lines : panel.lines) : [] };
}

/** Everything a result follows from. */
export function origin(root: HTMLElement, head: Provenance & { effective: Effective }): void {
  const rows: [string, string][] = [
    ["Experiment", head.title],
    ["SHA-256 of the experiment", head.digest],
    ["Version of Inprofile", head.version],
    ["Seeds", head.seeds.length > 12 ? `${head.seeds.slice(0, 3).join(", ")} … ${head.seeds[head.seeds.length - 1]}` : head.seeds.join(", ")],
    ["Hosts", head.live ? "real (network namespaces): no two runs are alike" : "simulated: the same seed gives the same bytes"],
    ...head.set.map(([key, value]): [string, string] => [`--set ${key}`, value]),
  ];
  put(
    root,
    h("h2", {}, "Provenance"),
    h("dl", { class: "pairs" }, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, name.startsWith("SHA") ? h("code", {}, value) : value)])),
    head.text === null ? h("p", { class: "muted" }, "An older result: it lacks the text of its experiment.") : h("details", { open: true }, h("summary", {}, "The experiment as it was written"), h("pre", { tabindex: 0 }, head.text)),
    h("details", {}, h("summary", {}, "The experiment as it ran, every value filled in"), h("pre", { tabindex: 0 }, JSON.stringify(head.effective, null, 2))),
  );
}
