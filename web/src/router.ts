// A running inprofiled: what every customer and class gets at this moment, and got in the last minutes.

import { get, isFile, Refused, type Packed } from "./api";
import { h, put, tell } from "./dom";
import { number, quantity } from "./format";
import { notInFile, problem, type Place } from "./parts";
import { routerPanels } from "./routerpanels";
import { address, keep, keepSoon } from "./state";
import { Table, type Column } from "./table";
import { TimePlots } from "./timeplots";
import type { Row, Watched } from "./watched";

/** A row with its present figures. */
export interface Shown extends Row {
  id: string;
  figures: Record<string, number>;
}

/** As many rows have lines without being asked for, and at most. */
const BUSIEST = 6;
const MOST = 10;

export async function router({ root, query, signal }: Place): Promise<void> {
  if (isFile) {
    put(root, notInFile("A running router"));
    return;
  }
  const asked = (query["rows"] ?? "").split("|").filter(Boolean);
  const chosen = new Set(asked);
  let paused = false;
  let latest = await look(chosen);
  const pick = (): void => {
    // Those that send most; what an address names stays.
    if (!asked.length) busiest(shownRows(latest)).forEach((id) => chosen.add(id));
  };
  pick();
  document.title = "Router – Inprofile";

  const status = h("p", { class: "status", role: "status" });
  const state = h("p", { class: "muted" });
  const trouble = h("div");
  const plots = new TimePlots(
    {
      origin: () => `inprofiled ${latest.head.version} at ${latest.head.router} · watched since ${latest.head.began}`,
      least: 20,
      names: () => ["inprofiled", latest.head.router.split("/").pop() ?? "", latest.head.began],
    },
    signal,
  );
  const rows = (kind: Row["kind"]): Shown[] => shownRows(latest).filter((row) => row.kind === kind);
  const select = (id: string, on: boolean): void => {
    if (on) chosen.add(id);
    else chosen.delete(id);
    while (chosen.size > MOST) chosen.delete([...chosen][0]!);
    keep({ rows: [...chosen].join("|") });
    void refresh();
  };
  const table = (kind: Row["kind"], caption: string, changed?: (n: number) => void): Table<Shown> =>
    new Table(columnsOf(kind, chosen, select), rows(kind), {
      caption,
      text: (row) => `${row.name} ${row.group ?? ""} ${row.direction}`,
      ...(changed ? { changed } : {}),
      ...(kind === "customer" ? { sorted: { column: 2, down: true } } : {}),
    });
  const count = h("span", { class: "muted" });
  const classes = table("class", "Classes");
  const customers = table("customer", "Customers", (n) => {
    count.textContent = `${n.toLocaleString("en")} of ${rows("customer").length.toLocaleString("en")}`;
  });
  const search = h("input", { type: "search", placeholder: "name, group, upstream", value: query["find"] ?? "" });
  search.addEventListener("input", () => {
    customers.filter(search.value);
    keepSoon({ find: search.value });
  });
  if (search.value) customers.filter(search.value);
  const pause = h("button", { type: "button", class: "small", "aria-pressed": "false" }, "Pause");
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Go on" : "Pause";
    tell(paused ? "Paused." : "Going on.");
    if (paused) draw();
    else void refresh();
  });
  const busy = h("button", { type: "button", class: "small" }, "Draw the busiest");
  busy.addEventListener("click", () => {
    chosen.clear();
    busiest(shownRows(latest)).forEach((id) => chosen.add(id));
    keep({ rows: null });
    void refresh();
  });
  put(
    root,
    h("div", { class: "head" }, h("p", { class: "kicker" }, latest.head.results ? h("a", { href: address("list", {}) }, "All results") : "Router", ` / ${latest.head.router}`), h("h1", {}, "Running router")),
    status,
    state,
    trouble,
    h("div", { class: "bar" }, pause, busy),
    plots.root,
    h("h2", {}, "Customers"),
    h("div", { class: "bar" }, h("label", { class: "field" }, h("span", {}, "Filter"), search), count),
    customers.root,
    h("h2", {}, "Classes"),
    classes.root,
    h("p", { class: "muted" }, "Rates are those between the last two looks. The mean delay is that of the packets that left in between; 99 % of all packets since the customer came had no more than p99."),
  );

  const draw = (): void => {
    const { head } = latest;
    const lost = head.error !== null;
    const late = head.at - head.seen > 5 * head.every;
    const words = lost
      ? `The router does not answer: ${head.error}. What it showed last stays, and it is asked again every ${head.every === 1 ? "second" : `${number(head.every)} s`}.`
      : paused
        ? "Paused."
        : late
          ? "Waiting for the router's answer."
          : "Live.";
    status.classList.toggle("problem", lost);
    // Said once, not each second: the figures of the time are no news to a screen reader.
    if (status.textContent !== words) status.replaceChildren(words);
    const ports = head.ports.map(([name, is]) => `${name} ${is}`).join(", ");
    state.textContent = `inprofiled ${head.version || "of an older version"}, ${head.mode === "normal" ? "normal" : head.mode === "bypass" ? "bypass: everything passes unmarked and unshaped" : "failed"}, up ${upFor(head.uptime)}; ${ports}${head.restarts ? `; restarted ${head.restarts === 1 ? "once" : `${head.restarts} times`} while it was watched` : ""}${lost || late ? `; last seen ${ago(head.at - head.seen)} ago` : ""}`;
    trouble.replaceChildren(...head.trouble.map(problem), ...head.notes.map((text) => h("p", { class: "notice" }, text)));
    plots.set(routerPanels(latest));
    root.dataset["looks"] = String(latest.arrays[head.t]!.length);
  };
  const drawAll = (): void => {
    draw();
    classes.renew(rows("class"));
    customers.renew(rows("customer"));
  };
  let asking = false;
  const refresh = async (): Promise<void> => {
    if (asking) return;
    asking = true;
    try {
      latest = await look(chosen);
      if (signal.aborted) return;
      if (!asked.length && !chosen.size) pick();
      drawAll();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (signal.aborted) return;
      status.classList.add("problem");
      if (status.textContent !== error.message) status.replaceChildren(error.message);
    } finally {
      asking = false;
    }
  };
  const timer = setInterval(() => {
    if (!paused && !document.hidden) void refresh();
  }, 1000 * latest.head.every);
  signal.addEventListener("abort", () => clearInterval(timer));
  draw();
  // The first rates need a second look.
  void refresh();
}

function look(chosen: ReadonlySet<string>): Promise<Packed<Watched>> {
  return get<Watched>("router", { row: [...chosen] });
}

function shownRows({ head, arrays }: Packed<Watched>): Shown[] {
  const values = arrays[head.now]!;
  const width = head.columns.length;
  return head.rows.map((row, i) => ({
    ...row,
    id: `${row.kind}/${row.direction}/${row.name}`,
    figures: Object.fromEntries(head.columns.map((name, k) => [name, values[i * width + k] ?? NaN])),
  }));
}

/** The customers that send most; without customers, the classes. */
function busiest(all: readonly Shown[]): string[] {
  const customers = all.filter((row) => row.kind === "customer");
  const of = customers.length ? customers : all;
  const rate = (row: Shown): number => row.figures["offered"] || 0;
  return [...of].sort((a, b) => rate(b) - rate(a) || a.id.localeCompare(b.id)).slice(0, BUSIEST).map((row) => row.id);
}

function columnsOf(kind: Row["kind"], chosen: ReadonlySet<string>, select: (id: string, on: boolean) => void): Column<Shown>[] {
  const figure = (head: string, name: string, unit: string): Column<Shown> => ({
    head,
    value: (row) => finite(row.figures[name]),
    show: (row) => quantity(row.figures[name], unit, 3),
    numeric: true,
  });
  const tick = (row: Shown): Node =>
    h(
      "label",
      { class: "pick" },
      h("input", {
        type: "checkbox",
        "data-key": row.id,
        "aria-label": `Draw ${row.name}, ${row.direction}`,
        checked: chosen.has(row.id),
        change: (event: Event) => select(row.id, (event.target as HTMLInputElement).checked),
      }),
      h("span", {}, row.name, row.group ? h("small", {}, ` ${row.group}`) : null),
    );
  const sent = (row: Shown): number => (row.figures["in"] ?? NaN) + (row.figures["out"] ?? NaN) + (row.figures["red"] ?? NaN);
  return [
    { head: kind === "class" ? "Class" : "Customer", value: (row) => row.name, show: tick },
    { head: "Direction", value: (row) => row.direction },
    figure("Offered", "offered", "bit/s"),
    { head: "Sent", value: (row) => finite(sent(row)), show: (row) => quantity(sent(row), "bit/s", 3), numeric: true },
    ...(kind === "customer" ? [{ head: "Contract", value: (row: Shown) => row.contract, show: (row: Shown) => quantity(row.contract, "bit/s", 3), numeric: true }] : []),
    figure("IN", "in", "bit/s"),
    figure("OUT", "out", "bit/s"),
    figure("Red", "red", "bit/s"),
    { head: "Drops/s", value: (row) => finite(drops(row)), show: dropped, numeric: true },
    ...(kind === "class" ? [figure("Marked/s", "marked", "1")] : []),
    figure("Waiting", "waiting", "1"),
    ...(kind === "customer" ? [figure("Mean delay", "delay", "s"), figure("p99", "p99", "s")] : []),
  ];
}

function drops(row: Shown): number {
  return Object.entries(row.figures).reduce((sum, [name, x]) => (name.startsWith("dropped_") ? sum + x : sum), 0);
}

/** How many, and what for. */
function dropped(row: Shown): Node {
  const causes = Object.entries(row.figures).filter(([name, x]) => name.startsWith("dropped_") && x > 0);
  const why = causes.map(([name, x]) => `${name.slice("dropped_".length).replaceAll("_", " ")} ${number(x, 3)}`).join(", ");
  return h("span", { class: causes.length ? "bad" : "" }, quantity(drops(row), "1", 3), why ? h("small", { class: "causes" }, why) : null);
}

function finite(x: number | undefined): number | null {
  return x === undefined || !Number.isFinite(x) ? null : x;
}

function ago(seconds: number): string {
  return seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} minutes`;
}

function upFor(seconds: number): string {
  const two = (x: number): string => String(Math.floor(x)).padStart(2, "0");
  const days = Math.floor(seconds / 86400);
  return `${days ? `${days} d ` : ""}${two((seconds / 3600) % 24)}:${two((seconds / 60) % 60)}:${two(seconds % 60)}`;
}
