// Rates as means over a bin. A packet counts whole at one moment, when it has arrived: over less than several packets a rate is a comb,
// with teeth above the link's rate. The bin is as wide as the picture and the packets need; the samples themselves are the other choice.

import type { Panel } from "./panels";

/** Seconds that rates are means over; `auto`: what fits the picture; `raw`: as they were sampled. */
export type Bin = "auto" | "raw" | number;

/** So many pixels of a picture have one value of a line. */
const PIXELS = 4;
/** So many packets of a mean line are in a bin, as long as the picture has so many bins. */
const PACKETS = 20;
const LEAST_BINS = 40;
/** Bytes of a packet where the samples are too coarse to show any. */
const PACKET = 1500;
/** The share of the samples that may hold less than a packet of data: handshakes and probes are small, and rare. */
const RARE = 0.1;
const ENOUGH = 4096;

/** What the samples of a panel of rates are like. */
export interface Sampled {
  /** Seconds from one to the next. */
  every: number;
  /** Bytes of a packet. */
  packet: number;
  /** Bytes a second of a mean line. */
  rate: number;
}

/** Whether a panel's values are means since the sample before, and which; null for what is read at a moment. */
export function sampled(panel: Panel): Sampled | null {
  if (panel.unit !== "bit/s") return null;
  const lines = panel.lines.filter(({ t }) => t.length > 1);
  const total = lines.reduce((n, { v }) => n + v.length, 0);
  // Some thousand sizes are enough to sort, and a slider that is dragged asks at each step.
  const stride = Math.ceil(total / ENOUGH);
  let every = 0;
  let sum = 0;
  let count = 0;
  const sizes: number[] = [];
  for (const { t, v } of lines) {
    const step = stepOf(t);
    every = Math.max(every, step);
    for (let i = 1; i < v.length; i++) {
      if (!(v[i]! >= 0)) continue;
      sum += v[i]!;
      count += 1;
      if (v[i]! > 0 && i % stride === 0) sizes.push((v[i]! * step) / 8);
    }
  }
  if (!sizes.length) return null;
  sizes.sort((a, b) => a - b);
  return { every, packet: Math.min(PACKET, sizes[Math.floor(sizes.length * RARE)]!), rate: sum / count / 8 };
}

/** Seconds from one sample to the next. */
function stepOf(times: Float64Array): number {
  return (times[times.length - 1]! - times[0]!) / (times.length - 1);
}

/** The bins that may be chosen: 1, 2, 5, 10 … samples, up to a stretch of time. */
export function steps(every: number, most: number): number[] {
  const made: number[] = [];
  for (let power = 1; ; power *= 10) {
    for (const n of [1, 2, 5]) {
      if (made.length && n * power * every > most * (1 + 1e-9)) return made;
      made.push(Number((n * power * every).toPrecision(9)));
    }
  }
}

/** The bin for so many seconds in a picture so many pixels wide. */
export function fitting({ every, packet, rate }: Sampled, stretch: number, width: number): number {
  const wanted = Math.max((PIXELS * stretch) / width, Math.min((PACKETS * packet) / rate, stretch / LEAST_BINS));
  return steps(every, 10 * Math.max(wanted, every)).find((bin) => bin >= wanted * (1 - 1e-9))!;
}

/** A panel's lines as means over bins of so many seconds, each where the middle of its samples lies. */
export function binned(panel: Panel, bin: number): Panel {
  const known = new Map<Float64Array, { t: Float64Array; edges: number[] }>();
  const lines = panel.lines.map((line) => {
    let to = known.get(line.t);
    if (!to) known.set(line.t, (to = edgesOf(line.t, bin)));
    const { t, edges } = to;
    const v = t.map((_, k) => mean(line.v, edges[k]!, edges[k + 1]!));
    return { ...line, t, v };
  });
  return { ...panel, lines };
}

/** Where the samples of each bin begin. A sample is of the time since the one before; the first is of none and is left out. */
function edgesOf(times: Float64Array, bin: number): { t: Float64Array; edges: number[] } {
  const every = times.length > 1 ? stepOf(times) : bin;
  const edges: number[] = [];
  for (let i = 1, last = NaN; i < times.length; i++) {
    const k = Math.ceil(times[i]! / bin - 1e-6);
    if (k !== last) edges.push(i);
    last = k;
  }
  edges.push(times.length);
  const t = Float64Array.from({ length: edges.length - 1 }, (_, k) => (times[edges[k]!]! - every + times[edges[k + 1]! - 1]!) / 2);
  return { t, edges };
}

function mean(values: Float64Array, from: number, to: number): number {
  let sum = 0;
  let n = 0;
  for (let i = from; i < to; i++) {
    if (Number.isNaN(values[i]!)) continue;
    sum += values[i]!;
    n += 1;
  }
  return n ? sum / n : NaN;
}
