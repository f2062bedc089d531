// Parts that several views have.

import type { Packed } from "./api";
import { isFile } from "./api";
import { h } from "./dom";
import { address } from "./state";

/** What every view is given: where to draw, and when to stop. */
export interface Place {
  root: HTMLElement;
  query: Record<string, string>;
  signal: AbortSignal;
}

export interface Estimate {
  unit: string;
  mean: number;
  ci95: [number | null, number | null];
  n: number;
}

export interface Provenance {
  title: string;
  seeds: number[];
  version: string;
  digest: string;
  live: boolean;
  again: boolean;
  set: [string, string][];
  text: string | null;
  effective: Effective;
}

export interface Effective {
  duration: string;
  measure: { at: string; from: string; to: string };
  flows_in_all: number;
  [key: string]: unknown;
}

export type Answer<T> = Promise<Packed<T>>;

/** A heading with where it belongs above it. */
export function heading(title: string, kicker: string, ...more: (Node | string | null)[]): HTMLElement {
  return h("div", { class: "head" }, h("p", { class: "kicker" }, h("a", { href: address("list", {}) }, "All results"), ` / ${kicker}`), h("h1", {}, title), ...more);
}

/** Something that is wrong, in a box. */
export function problem(text: string): HTMLElement {
  return h("p", { class: "problem", role: "alert" }, text);
}

/** Links that choose what is shown; the present one is marked. */
export function tabs(view: string, query: Record<string, string>, all: readonly [string, string][], now: string): HTMLElement {
  return h(
    "nav",
    { class: "tabs", "aria-label": "Views" },
    ...all.map(([id, name]) => h("a", { href: address(view, { ...query, tab: id }), "aria-current": id === now ? "page" : null }, name)),
  );
}

/** A choice of one among several. */
export function choice(label: string, options: readonly (readonly [string, string])[], now: string, changed: (value: string) => void): HTMLElement {
  const select = h("select", {}, ...options.map(([value, name]) => h("option", { value, selected: value === now }, name)));
  select.addEventListener("change", () => changed(select.value));
  return h("label", { class: "field" }, h("span", {}, label), select);
}

/** Said where something needs the server. */
export function notInFile(what: string): HTMLElement | null {
  return isFile ? h("p", { class: "notice" }, `${what} is not in a file that was sent: nothing runs here. Ask for the folder, and open it with inprofile view.`) : null;
}
