// Everything in the folder: runs, sweeps, and what can't be shown, with the reason.

import { get, isFile, leftOut } from "./api";
import { h, put } from "./dom";
import type { Place } from "./parts";
import { address, keep, keepSoon } from "./state";
import { Table, type Column } from "./table";

export interface Entry {
  id: string;
  kind: "run" | "sweep" | "broken";
  problem: string;
  title: string;
  version?: string;
  digest?: string;
  seeds?: number;
  runs?: number;
  settings?: number;
  duration?: string;
  flows?: number;
  schemes?: string[];
  keys?: string[];
  live?: boolean;
}

const KIND = { run: "run", sweep: "sweep", broken: "broken" };

export async function list({ root, query }: Place): Promise<void> {
  const { head } = await get<{ folder: string | null; router?: string | null; entries: Entry[] }>("index");
  if (head.folder === null) {
    // Only a router is shown.
    location.replace(address("router", {}));
    return;
  }
  const { entries } = head;
  document.title = `${head.folder} – Inprofile`;
  const chosen = new Set((query["ids"] ?? "").split("|").filter(Boolean));
  const compare = h("a", { class: "button", hidden: true }, "Compare");
  const offer = (): void => {
    compare.hidden = chosen.size < 2;
    compare.textContent = `Compare ${chosen.size} runs`;
    compare.href = address("compare", { ids: [...chosen].join("|") });
    keep({ ids: [...chosen].join("|") });
  };
  const link = (entry: Entry): Node =>
    h(
      "span",
      {},
      entry.kind === "broken" ? entry.title : h("a", { href: address(entry.kind, { id: entry.id }) }, entry.title),
      entry.problem ? h("small", { class: entry.kind === "broken" ? "note bad" : "note part" }, entry.problem) : null,
    );
  const tick = (entry: Entry): Node | string =>
    entry.kind === "run"
      ? h("input", {
          type: "checkbox",
          "aria-label": `Compare ${entry.id}`,
          checked: chosen.has(entry.id),
          change: (event: Event) => {
            if ((event.target as HTMLInputElement).checked) chosen.add(entry.id);
            else chosen.delete(entry.id);
            offer();
          },
        })
      : "";
  const columns: Column<Entry>[] = [
    { head: "Experiment", value: (e) => e.title, show: link },
    { head: "Folder", value: (e) => e.id, show: (e) => h("code", {}, e.id) },
    { head: "Kind", value: (e) => `${KIND[e.kind]}${e.live ? ", real hosts" : ""}` },
    { head: "Schemes", value: (e) => (e.schemes ?? []).join(" + ") || (e.keys ?? []).join(", ") || null },
    { head: "Flows", value: (e) => e.flows ?? null, numeric: true },
    { head: "Runs", value: (e) => e.runs ?? null, show: (e) => (e.runs ?? "–").toLocaleString("en"), numeric: true },
    { head: "Compare", value: (e) => (chosen.has(e.id) ? 0 : 1), show: tick },
  ];
  const count = h("span", { class: "muted" });
  const table = new Table(columns, entries, {
    caption: "Results",
    text: (e) => [e.title, e.id, e.kind, ...(e.schemes ?? []), ...(e.keys ?? []), e.problem].join(" "),
    rowClass: (e) => e.kind,
    changed: (n) => {
      count.textContent = `${n.toLocaleString("en")} of ${entries.length.toLocaleString("en")}`;
    },
  });
  const search = h("input", { type: "search", placeholder: "rio sweep …", value: query["find"] ?? "" });
  search.addEventListener("input", () => {
    table.filter(search.value);
    keepSoon({ find: search.value });
  });
  if (search.value) table.filter(search.value);
  const broken = entries.filter((e) => e.kind === "broken").length;
  put(
    root,
    h("div", { class: "head" }, h("p", { class: "kicker" }, "Results"), h("h1", {}, head.folder)),
    head.router ? h("p", {}, "A running router is watched too: ", h("a", { href: address("router", {}) }, head.router)) : null,
    isFile ? h("p", { class: "notice" }, "This is a file that was sent. Everything in it can be looked at and saved; nothing can be run, so there is no what-if.") : null,
    leftOut.length ? h("details", { class: "notice" }, h("summary", {}, `Not in this file: ${leftOut.length}`), h("ul", {}, ...leftOut.map((what) => h("li", {}, what)))) : null,
    broken ? h("p", { class: "muted" }, `${broken} of ${entries.length} cannot be shown; the notes say why.`) : null,
    h("div", { class: "bar" }, h("label", { class: "field" }, h("span", {}, "Filter"), search), count, compare),
    table.root,
  );
  offer();
}
