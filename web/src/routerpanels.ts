// What is drawn of a running router: several rows beside each other, or one in detail.

import type { Packed } from "./api";
import type { Drawn, Panel } from "./panels";
import type { Watched } from "./watched";

const TOKENS = /^(tokens|tc|te|tp)$/;

/** Panels of the chosen rows. */
export function routerPanels(found: Packed<Watched>): Panel[] {
  const { history } = found.head;
  const [first] = history;
  const made = history.length === 1 && first ? oneRow(found, first) : several(found);
  return made.filter((panel) => panel.lines.length);
}

type History = Watched["history"][number];

function several({ head, arrays }: Packed<Watched>): Panel[] {
  const t = arrays[head.t]!;
  const names = labels(head);
  const panel = (id: string, title: string, unit: string, value: (of: History) => Float64Array): Panel => ({
    id,
    title,
    unit,
    lines: head.history
      .map((of, n): Drawn => ({ name: names(of.id), t, v: value(of), n }))
      .filter((line) => line.v.some((x) => !Number.isNaN(x))),
  });
  const of = (name: string) => (row: History): Float64Array => arrays[row.series[name]!]!;
  return [
    panel("sent", "Sent", "bit/s", (row) => sum(["in", "out", "red"].map((name) => of(name)(row)))),
    panel("delay", "Mean delay", "s", of("delay")),
    panel("drops", "Drops a second", "packets", (row) => sum(causes(head).map((name) => of(name)(row)))),
    panel("waiting", "Waiting", "packets", of("waiting")),
  ];
}

function oneRow({ head, arrays }: Packed<Watched>, row: History): Panel[] {
  const t = arrays[head.t]!;
  const about = head.rows.find((r) => `${r.kind}/${r.direction}/${r.name}` === row.id);
  const name = labels(head)(row.id);
  const lines = (of: readonly (readonly [string, Float64Array, number?])[]): Drawn[] =>
    of.map(([text, v, n], i) => ({ name: text, t, v, n: n ?? i })).filter((line) => line.v.some((x) => !Number.isNaN(x)));
  const series = (key: string): Float64Array => arrays[row.series[key]!]!;
  const contract = about?.contract ?? null;
  const gauges = Object.keys(row.series).filter((key) => !head.columns.includes(key));
  const averages = gauges.filter((key) => key.startsWith("avg"));
  const chances = gauges.filter((key) => /^p(_|$)/.test(key));
  const tokens = gauges.filter((key) => TOKENS.test(key));
  const rest = gauges.filter((key) => ![...averages, ...chances, ...tokens].includes(key));
  return [
    {
      id: "rates",
      title: `${name}: rates`,
      unit: "bit/s",
      lines: lines([
        ["IN", series("in"), 0],
        ["OUT", series("out"), 1],
        ["red", series("red"), 3],
        ["offered", series("offered"), 4],
        ...(contract === null ? [] : [["contract", t.map(() => contract), 2] as const]),
      ]),
    },
    { id: "delay", title: `${name}: delay`, unit: "s", lines: lines([["mean", series("delay")], ["p99 since the customer came", series("p99")]]) },
    {
      id: "drops",
      title: `${name}: drops and marks a second`,
      unit: "packets",
      lines: lines([
        ...causes(head)
          .filter((key) => series(key).some((x) => x > 0))
          .map((key) => [key.slice("dropped_".length).replaceAll("_", " "), series(key)] as const),
        ...(series("marked").some((x) => x > 0) ? [["marked CE", series("marked")] as const] : []),
      ]),
    },
    { id: "waiting", title: `${name}: waiting`, unit: "packets", lines: lines([["packets", series("waiting")], ...averages.map((key) => [key, series(key)] as const)]) },
    { id: "tokens", title: `${name}: tokens in the bucket`, unit: "B", lines: lines(tokens.map((key) => [key, series(key)] as const)) },
    { id: "p", title: `${name}: probabilities`, unit: "", lines: lines(chances.map((key) => [key, series(key)] as const)) },
    ...rest.map((key) => ({ id: `gauge ${key}`, title: `${name}: ${key.replaceAll("_", " ")}`, unit: "", lines: lines([[key, series(key)]]) })),
  ];
}

function causes(head: Watched): string[] {
  return head.columns.filter((name) => name.startsWith("dropped_"));
}

/** A row's name, with its direction where both directions are drawn. */
function labels(head: Watched): (id: string) => string {
  const both = new Set(head.history.map((row) => row.id.split("/")[1])).size > 1;
  return (id) => {
    const [, direction = "", ...name] = id.split("/");
    return both ? `${name.join("/")}, ${direction}` : name.join("/");
  };
}

function sum(all: readonly Float64Array[]): Float64Array {
  const [first, ...rest] = all;
  if (!first) return new Float64Array();
  return first.map((x, i) => rest.reduce((total, of) => total + of[i]!, x));
}
