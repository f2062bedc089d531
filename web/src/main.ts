// The page: what the address says is what is shown.

import "uplot/dist/uPlot.min.css";
import "./style.css";
import { isFile, Refused } from "./api";
import { compare } from "./compare";
import { h, put, tell } from "./dom";
import { list } from "./list";
import { problem, type Place } from "./parts";
import { router } from "./router";
import { run } from "./run";
import { address, current } from "./state";
import { sweep } from "./sweep";

const VIEWS: Record<string, (place: Place) => Promise<void>> = { list, run, sweep, compare, router };

let showing = new AbortController();

async function show(): Promise<void> {
  showing.abort();
  showing = new AbortController();
  const { signal } = showing;
  const { view, query } = current();
  const main = document.getElementById("main")!;
  const root = h("div", { class: `view ${view}` });
  const draw = VIEWS[view];
  try {
    if (!draw) throw new Refused(`There is no view "${view}".`, 404);
    const drawing = draw({ root, query, signal });
    // A view shows as it grows, but not before it has anything: no flash of an empty page.
    const soon = setTimeout(() => {
      if (!signal.aborted) main.replaceChildren(root);
    }, 120);
    await drawing.finally(() => clearTimeout(soon));
  } catch (error) {
    if (signal.aborted) return;
    const text = error instanceof Error ? error.message : String(error);
    put(root, problem(text), h("p", {}, h("a", { href: address("list", {}) }, "All results")));
    if (!(error instanceof Refused)) console.error(error);
  }
  if (signal.aborted) return;
  if (root.parentElement !== main) main.replaceChildren(root);
  document.documentElement.dataset["ready"] = view;
  tell(document.title);
}

put(
  document.querySelector(".top")!,
  h("a", { class: "brand", href: address("list", {}) }, "Inprofile"),
  h("span", { class: "muted" }, isFile ? "a file that was sent" : ""),
);
addEventListener("hashchange", () => {
  scrollTo(0, 0);
  void show();
});
void show();
