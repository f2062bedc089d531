// What each flow of a result got, and why: a row for each, and for one that starved a sentence that names the cause.

import { get, isFile } from "./api";
import { h, put, tell } from "./dom";
import { estimated, number, quantity } from "./format";
import type { Place } from "./parts";
import { keep } from "./state";
import { Table, type Column } from "./table";

interface Row {
  flow: string;
  group: string;
  contract: number | null;
  rtt: number;
  throughput: { mean: number; ci95: [number | null, number | null]; n: number };
  of_contract: number | null;
  share: number | null;
  sent_out: number | null;
  lost: number;
  drops: Record<string, number>;
  timeouts: number;
}

interface Why {
  flow: string;
  because: string;
  removals: string[];
  together: boolean;
  again: boolean;
  goal: number | null;
  findings: string[];
  packets: { what: string; place: string; packets: number; share: number }[];
  window: { from: string; to: string };
}

/** Less of a contract is short of it. */
const MISSED = 0.95;

export async function flows({ root, query, signal }: Place, id: string): Promise<void> {
  const { head } = await get<{ flows: Row[]; seeds: number[] }>("flows", { id });
  const rows = head.flows;
  const why = h("section", { class: "why", "aria-label": "Why a flow got what it got" });
  const show = async (flow: string, said = true): Promise<void> => {
    if (said) keep({ flow });
    try {
      const found = (await get<Why>("explain", { id, flow })).head;
      if (signal.aborted) return;
      draw(why, id, found, signal);
      if (said) {
        why.scrollIntoView({ block: "nearest" });
        tell(`${flow}: ${found.because || found.findings.join(" ")}`);
      }
    } catch (error) {
      why.replaceChildren(h("p", { class: "problem", role: "alert" }, (error as Error).message));
    }
  };
  const coloured = rows.some((row) => row.sent_out);
  const sold = rows.some((row) => row.contract !== null);
  const causes = [...new Set(rows.flatMap((row) => Object.keys(row.drops)))];
  const columns: Column<Row>[] = [
    { head: "Flow", value: (r) => r.flow, show: (r) => h("button", { type: "button", class: "link", "aria-label": `Why ${r.flow} got what it got`, click: () => void show(r.flow) }, r.flow) },
    ...(sold
      ? [
          { head: "Contract", value: (r: Row) => r.contract, show: (r: Row) => quantity(r.contract, "bit/s", 3), numeric: true },
          { head: "Got [95 %]", value: (r: Row) => r.throughput.mean, show: got, numeric: true },
          { head: "Of the contract", value: (r: Row) => r.of_contract, show: (r: Row) => h("span", { class: short(r) ? "bad" : "" }, r.of_contract === null ? "–" : percent(r.of_contract)), numeric: true },
        ]
      : [{ head: "Got [95 %]", value: (r: Row) => r.throughput.mean, show: got, numeric: true }]),
    { head: "Share of all", value: (r) => r.share, show: (r) => (r.share === null ? "–" : percent(r.share)), numeric: true },
    { head: "RTT", value: (r) => r.rtt, show: (r) => quantity(r.rtt, "s", 3), numeric: true },
    ...(coloured ? [{ head: "Sent OUT", value: (r: Row) => r.sent_out, show: (r: Row) => (r.sent_out === null ? "–" : percent(r.sent_out)), numeric: true }] : []),
    { head: "Lost", value: (r) => r.lost, show: (r) => percent(r.lost), numeric: true },
    ...causes.map((cause) => ({ head: cause.replaceAll("_", " "), value: (r: Row) => r.drops[cause] ?? 0, show: (r: Row) => number(r.drops[cause] ?? 0, 3), numeric: true })),
    { head: "RTOs", value: (r) => r.timeouts, show: (r) => number(r.timeouts, 3), numeric: true },
  ];
  put(
    root,
    why,
    new Table(columns, rows, { caption: "Flows", text: (r) => `${r.flow} ${r.group}` }).root,
    h("p", { class: "muted" }, `Means over ${head.seeds.length === 1 ? "one run" : `${head.seeds.length} runs`}. Rates are on the wire, over the measured window; losses, by cause in packets a run, and RTOs are of the whole run. A flow's name says why it got that.`),
  );
  // The one that is farthest from what it bought, or what the address names.
  const first = query["flow"] && rows.some((r) => r.flow === query["flow"]) ? query["flow"] : worst(rows)?.flow;
  if (first) await show(first, false);
  else why.append(h("p", { class: "muted" }, "Choose a flow to see why it got what it got."));
}

function worst(rows: readonly Row[]): Row | undefined {
  const sold = rows.filter((row) => row.of_contract !== null);
  return sold.reduce<Row | undefined>((least, row) => (!least || row.of_contract! < least.of_contract! ? row : least), undefined);
}

function short(row: Row): boolean {
  return row.of_contract !== null && row.of_contract < MISSED;
}

function got({ throughput: t }: Row): string {
  return estimated(t.mean, t.ci95, "bit/s");
}

function percent(x: number): string {
  return `${number(100 * x, x < 0.1 ? 2 : 3)} %`;
}

function draw(root: HTMLElement, id: string, found: Why, signal: AbortSignal): void {
  const outcome = h("div", { role: "status" });
  const run = h("button", { type: "button", class: "small" }, "Run it without that");
  run.addEventListener("click", () => {
    run.disabled = true;
    outcome.replaceChildren("Running …");
    void tryIt(id, found.flow, outcome, signal).finally(() => (run.disabled = false));
  });
  const most = Math.max(...found.packets.map((p) => p.share), 1e-9);
  root.replaceChildren(
    h("h2", {}, `Why ${found.flow} got what it got`),
    ...(found.because
      ? [
          h("p", { class: "cause" }, found.because),
          found.again && !isFile ? h("p", {}, run, " ", h("span", { class: "muted" }, `with ${found.removals.join(found.together ? " and " : ", or with ")}`)) : "",
          outcome,
        ]
      : [found.goal === null ? h("p", { class: "muted" }, "Nothing is amiss.") : h("p", { class: "muted" }, "None of the causes that are looked for fits; the figures are below.")]),
    h(
      "details",
      { open: !found.because || innerWidth > 740 },
      h("summary", {}, "What became of its packets"),
      h("ul", { class: "findings" }, ...found.findings.map((text) => h("li", {}, text))),
      h("div", { class: "fates" }, ...found.packets.map((p) => {
      const fill = h("i", { class: p.place ? "fill" : "fill good-fill" });
      fill.style.width = `${((100 * p.share) / most).toFixed(2)}%`;
      return h("div", { class: "bar-row" }, h("span", { class: "name" }, p.place ? `${p.what.replaceAll("_", " ")} at ${p.place}` : p.what), h("div", { class: "bar-of" }, fill), h("span", { class: "n" }, `${percent(p.share)}, ${number(p.packets, 4)}`));
      })),
    ),
  );
}

async function tryIt(id: string, flow: string, outcome: HTMLElement, signal: AbortSignal): Promise<void> {
  try {
    const { head } = await get<{ outcome: { words: string; mended: boolean }[] }>("without", { id, flow });
    if (signal.aborted) return;
    outcome.replaceChildren(...head.outcome.map((one) => h("p", { class: one.mended ? "good" : "part" }, one.words)));
  } catch (error) {
    outcome.replaceChildren(h("p", { class: "problem" }, (error as Error).message));
  }
}
