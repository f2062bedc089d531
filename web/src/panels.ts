// Which samples are drawn together: a panel for each quantity, a line for each place it was sampled at.

import type { Packed } from "./api";
import { inPackets } from "./levels";

/** Samples of a monitor, as the server sends them. */
export interface Line {
  monitor: string;
  what: string;
  t: number;
  v: number;
}

/** One run's flows, in columns, and its samples. */
export interface Figures {
  seed: number;
  metrics: Record<string, { unit: string; value: number }>;
  flows: Record<string, (string | number | null)[]> & { flow: string[]; group: string[] };
  units: Record<string, string>;
  lines: Line[];
  levels: QueueLevel[];
}

/** What a queue is held to: a threshold, a target, its limit; in full packets, and as a delay in s. */
export interface QueueLevel {
  monitor: string;
  name: string;
  packets: number;
  /** Null: of a virtual backlog, which delays nothing. */
  delay: number | null;
}

/** A line across a panel. */
export interface Level {
  name: string;
  value: number;
}

export interface Drawn {
  name: string;
  t: Float64Array;
  v: Float64Array;
  /** Faint: what was before. */
  before?: boolean;
  /** Its number among the colours. */
  n: number;
}

export interface Panel {
  id: string;
  title: string;
  unit: string;
  lines: Drawn[];
  /** What a queue's samples are held to. */
  levels?: Level[];
}

const RATES = /^(received|arrived|sent|left)(_in|_out|_red)?$/;
const WORDS: Record<string, string> = {
  received: "Throughput",
  received_in: "Throughput, IN",
  received_out: "Throughput, OUT",
  cwnd: "Congestion window",
  ssthresh: "Slow-start threshold",
  tokens: "Tokens in the bucket",
  dropped: "Dropped since the last sample",
};

function unit(what: string): string {
  if (RATES.test(what)) return "bit/s";
  if (what === "cwnd" || what === "ssthresh") return "segments";
  if (/^(packets|avg|virtual_backlog|dropped)/.test(what)) return "packets";
  if (/^(tc|te|tp|tokens)$/.test(what)) return "B";
  if (/^(sojourn|target)/.test(what)) return "s";
  return "";
}

/** Quantities of one queue that are read together have one panel. */
function family(line: Line): [id: string, title: string, unit: string, name: string] {
  const { monitor, what } = line;
  if (/^(packets|avg|virtual_backlog)(_|$)/.test(what)) return [`queue ${monitor}`, `Queue at ${monitor}`, "packets", what];
  if (/^q?delay/.test(what)) return [`delay ${monitor}`, `Queue delay at ${monitor}`, "s", what];
  if (/^p_/.test(what)) return [`p ${monitor}`, `Drop probability at ${monitor}`, "", what];
  if (/^(arrived|sent|left)_/.test(what)) return [`${what.split("_")[0]} ${monitor}`, `${what.startsWith("arrived") ? "Arrivals" : "Departures"} at ${monitor}`, "bit/s", what];
  if (what === "dropped") return [`dropped ${monitor}`, `Dropped at ${monitor} between samples`, "packets", what];
  return [what, WORDS[what] ?? what.replaceAll("_", " "), unit(what), monitor];
}

/** All panels of a run: rates of flows first, then queues, then the rest. */
export function panels(found: Packed<{ lines: Line[]; levels?: QueueLevel[] }>): Panel[] {
  const made = new Map<string, Panel>();
  for (const line of found.head.lines) {
    const [id, title, of, name] = family(line);
    const panel = made.get(id) ?? { id, title, unit: of, lines: [] };
    made.set(id, panel);
    panel.lines.push({ name, t: found.arrays[line.t]!, v: found.arrays[line.v]!, n: panel.lines.length });
  }
  for (const level of found.head.levels ?? []) {
    const { monitor, name, delay } = level;
    const [length, wait] = [made.get(`queue ${monitor}`), made.get(`delay ${monitor}`)];
    if (length) (length.levels ??= []).push(...inPackets([level]));
    if (wait && delay !== null) (wait.levels ??= []).push({ name, value: delay });
  }
  const rank = (panel: Panel): number => {
    const at = ["received", "queue", "delay", "cwnd", "tokens", "p"].findIndex((word) => panel.id.split(" ")[0] === word);
    return at < 0 ? 9 : at;
  };
  return [...made.values()].sort((a, b) => rank(a) - rank(b));
}

/** Those shown without being asked for. */
export function usual(all: readonly Panel[]): string[] {
  const first = all.filter((p) => ["received", "cwnd"].includes(p.id) || /^(queue|delay) /.test(p.id)).map((p) => p.id);
  return first.length ? first : all.slice(0, 3).map((p) => p.id);
}

/** The same panel before and after: what was, faint, below what is. */
export function over(before: Panel | undefined, after: Panel): Panel {
  if (!before) return after;
  const names = new Set(after.lines.map((line) => line.name));
  const faint = before.lines.filter((line) => names.has(line.name)).map((line) => ({ ...line, name: `${line.name}, before`, before: true }));
  return { ...after, lines: [...faint, ...after.lines] };
}
