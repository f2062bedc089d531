// A run's packets: which were dropped or marked, and why: figures, law, random number, and what would have saved one.

import { get, isFile } from "./api";
import { h, put, tell } from "./dom";
import { number } from "./format";
import { choice, notInFile, type Place, type Provenance } from "./parts";
import { address, current, keep } from "./state";
import { csv, download } from "./save";
import { fileName } from "./format";
import { Table } from "./table";

interface Verdict {
  time: number;
  packet: number;
  flow: string;
  point: string;
  verdict: string;
  cause: string | null;
  why: string;
}

interface Found {
  seed: number;
  total: number;
  offset: number;
  all: number;
  counts: { point: string; verdict: string; cause: string | null; n: number }[];
  flows: string[];
  rows: Verdict[];
}

interface Way {
  packet: number;
  flow: string;
  steps: {
    time: number;
    point: string;
    verdict: string;
    cause: string | null;
    what: string;
    otherwise: string[];
    figures: { name: string; value: number; meaning: string }[];
  }[];
}

const PAGE = 200;

export async function packets(place: Place, head: Provenance & { id: string; setting?: number }, origin: (seed: number) => string): Promise<void> {
  const { root, query, signal } = place;
  if (isFile) {
    put(root, notInFile("The way of single packets"));
    return;
  }
  const seed = Number(query["seed"] ?? head.seeds[0]);
  const source: Record<string, string | number> = { id: head.id, seed, ...(head.setting === undefined ? {} : { setting: head.setting }) };
  const asked: Record<string, string> = {};
  for (const key of ["flow", "point", "verdict", "cause", "from", "to"]) if (query[key]) asked[key] = query[key];
  const list = h("div");
  const detail = h("section", { class: "way", "aria-label": "One packet" });
  const bar = h("div", { class: "bar" });
  let offset = 0;
  const draw = async (): Promise<void> => {
    const { head: found } = await get<Found>("packets", { ...source, ...asked, offset });
    if (signal.aborted) return;
    drawBar(found);
    const table = new Table<Verdict>(
      [
        { head: "Time (s)", value: (v) => v.time, show: (v) => v.time.toFixed(6), numeric: true },
        {
          head: "Packet",
          value: (v) => v.packet,
          show: (v) => h("button", { type: "button", class: "link", "aria-label": `Why packet ${v.packet}`, click: () => void why(v.packet) }, String(v.packet)),
          numeric: true,
        },
        { head: "Flow", value: (v) => v.flow },
        { head: "At", value: (v) => v.point },
        { head: "Verdict", value: (v) => v.verdict, show: (v) => h("span", { class: v.verdict === "drop" ? "bad" : "" }, v.cause ? `${v.verdict}, ${v.cause}` : v.verdict) },
        { head: "Figures", value: (v) => v.why, show: (v) => h("code", {}, short(v.why)) },
      ],
      found.rows,
      { caption: "Verdicts" },
    );
    const last = Math.min(found.total, offset + PAGE);
    const save = h(
      "button",
      {
        type: "button",
        class: "small",
        click: () =>
          download(
            `${fileName(head.title, "packets", asked["flow"] ?? "", `seed ${seed}`, head.digest.slice(0, 8))}.csv`,
            "text/csv",
            csv(origin(seed), ["time_s", "packet", "flow", "point", "verdict", "cause", "why"], found.rows.map((v) => [v.time, v.packet, v.flow, v.point, v.verdict, v.cause, v.why])),
          ),
      },
      "CSV",
    );
    list.replaceChildren(
      h(
        "p",
        { class: "muted" },
        found.total ? `${(offset + 1).toLocaleString("en")}–${last.toLocaleString("en")} of ${found.total.toLocaleString("en")} (${found.all.toLocaleString("en")} verdicts in this run). ` : "No verdict fits. ",
        ...(offset > 0 ? [page("Earlier", -PAGE)] : []),
        " ",
        ...(last < found.total ? [page("Later", PAGE)] : []),
        " ",
        save,
      ),
      table.root,
    );
  };
  const page = (name: string, by: number): HTMLElement =>
    h(
      "button",
      {
        type: "button",
        class: "small",
        click: () => {
          offset = Math.max(0, offset + by);
          void draw();
        },
      },
      name,
    );
  const drawBar = (found: Found): void => {
    const change = (key: string) => (value: string): void => {
      if (value) asked[key] = value;
      else delete asked[key];
      offset = 0;
      keep({ [key]: value });
      void draw();
    };
    const points = [...new Set(found.counts.map((c) => c.point))];
    const sums = new Map<string, number>();
    for (const c of found.counts) {
      if (asked["point"] && c.point !== asked["point"]) continue;
      const id = `${c.verdict}|${c.cause ?? ""}`;
      sums.set(id, (sums.get(id) ?? 0) + c.n);
    }
    const verdicts = [...sums].map(([id, n]): [string, string] => [id, `${id.replace("|", ", ").replace(/, $/, "")} (${n.toLocaleString("en")})`]);
    const now = asked["verdict"] ? `${asked["verdict"]}|${asked["cause"] ?? ""}` : "";
    const number_ = h("input", { type: "number", min: 0, step: 1, placeholder: "number", class: "exact" });
    number_.addEventListener("change", () => {
      if (number_.value !== "") void why(Number(number_.value));
    });
    bar.replaceChildren(
      choice("Seed", head.seeds.slice(0, 100).map((s) => [String(s), String(s)]), String(seed), (value) => {
        keep({ seed: value, packet: null });
        dispatchEvent(new HashChangeEvent("hashchange"));
      }),
      choice("Flow", [["", "all"], ...found.flows.map((f): [string, string] => [f, f])], asked["flow"] ?? "", change("flow")),
      choice("At", [["", "everywhere"], ...points.map((p): [string, string] => [p, p])], asked["point"] ?? "", change("point")),
      choice("Verdict", [["", "drops and marks"], ...verdicts], now, (value) => {
        const [verdict = "", cause = ""] = value.split("|");
        if (verdict) asked["verdict"] = verdict;
        else delete asked["verdict"];
        if (cause) asked["cause"] = cause;
        else delete asked["cause"];
        offset = 0;
        keep({ verdict, cause });
        void draw();
      }),
      h("label", { class: "field" }, h("span", {}, "Packet"), number_),
      asked["from"] ? h("span", { class: "muted" }, `${number(Number(asked["from"]))} to ${number(Number(asked["to"]))} s `, h("button", { type: "button", class: "small", click: () => {
        delete asked["from"];
        delete asked["to"];
        keep({ from: null, to: null });
        void draw();
      } }, "All of the time")) : "",
    );
  };
  const why = async (packet: number): Promise<void> => {
    keep({ packet });
    try {
      const { head: way } = await get<Way>("packet", { ...source, packet });
      if (signal.aborted) return;
      split.classList.add("chosen");
      drawWay(detail, way, seed);
      detail.scrollIntoView({ block: "nearest" });
      tell(`Packet ${packet}: ${way.steps.map((step) => step.what).join(" ")}`);
    } catch (error) {
      detail.replaceChildren(h("p", { class: "problem", role: "alert" }, (error as Error).message));
    }
  };
  const split = h("div", { class: "split" }, list, detail);
  put(root, bar, split);
  detail.append(h("p", { class: "muted" }, "Choose a packet to see why it got its colour, and why it was admitted, marked or dropped."));
  await draw();
  const first = current().query["packet"];
  if (first !== undefined) await why(Number(first));
}

function short(why: string): string {
  try {
    return Object.entries(JSON.parse(why) as Record<string, number>)
      .map(([name, value]) => `${name} ${number(value, 4)}`)
      .join(", ");
  } catch {
    return why;
  }
}

/** Seconds before and after a drop. */
const AROUND = 0.4;

/** The player at the moment of a drop at a link's queue. */
function seen({ verdict, point, cause, time }: Way["steps"][number]): HTMLElement | null {
  if (verdict !== "drop" || point.includes(".join") || cause === "policed" || cause === "edge") return null;
  const { view, query } = current();
  const { id, setting, seed } = query;
  const moment = { link: point.split("/")[0], t0: Math.max(0, time - AROUND).toFixed(3), t1: (time + AROUND).toFixed(3), t: time.toFixed(6) };
  return h("a", { href: address(view, { id, setting, seed, tab: "queue", ...moment }) }, "See it in the queue");
}

function drawWay(root: HTMLElement, way: Way, seed: number): void {
  root.replaceChildren(
    h("h2", {}, `Packet ${way.packet} of ${way.flow}, seed ${seed}`),
    h(
      "ol",
      { class: "steps" },
      ...way.steps.map((step) =>
        h(
          "li",
          { class: step.verdict === "drop" ? "dropped" : step.verdict === "mark" ? "marked" : "" },
          h("p", { class: "muted" }, `${step.time.toFixed(6)} s, ${step.point}`),
          h("p", {}, step.what, seen(step) ? " " : null, seen(step)),
          ...(step.otherwise.length
            ? [h("p", { class: "saved" }, step.verdict === "drop" ? "What would have saved it, all before being equal:" : "What would have decided otherwise:"), h("ul", {}, ...step.otherwise.map((text) => h("li", {}, text)))]
            : []),
          step.figures.length
            ? h(
                "details",
                {},
                h("summary", {}, "Figures"),
                h("dl", { class: "pairs" }, ...step.figures.flatMap((f) => [h("dt", {}, h("code", {}, f.name)), h("dd", {}, `${number(f.value, 6)} `, h("span", { class: "muted" }, f.meaning.replaceAll("`", "")))])),
              )
            : null,
        ),
      ),
    ),
  );
}
