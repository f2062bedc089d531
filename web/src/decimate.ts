// As many samples as a picture has room for: of each column of pixels the least and the greatest, so that no peak is lost.

import type { AlignedData } from "uplot";

type Values = ArrayLike<number | null | undefined>;

/** The first index whose time is not before. */
export function firstFrom(times: ArrayLike<number>, at: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle]! < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The samples from one time to another, with one more on either side so that lines go on to the edge; where a column would have more
 * than four, two in their place: its least and its greatest, in the order in which they came. A gap (null) stays a gap where the whole column is one.
 */
export function decimated(data: AlignedData, from: number, to: number, columns: number): AlignedData {
  const times = data[0];
  const begin = Math.max(0, firstFrom(times, from) - 1);
  const end = Math.min(times.length, firstFrom(times, to) + 2);
  const n = end - begin;
  if (n <= 4 * columns) return begin === 0 && end === times.length ? data : (data.map((of) => part(of, begin, end)) as unknown as AlignedData);
  const start = times[begin]!;
  const width = (times[end - 1]! - start) / columns;
  // Where each column begins; a column without a sample is left out.
  const edges: number[] = [];
  for (let i = begin, last = -1; i < end; i++) {
    const column = Math.min(columns - 1, Math.floor((times[i]! - start) / width));
    if (column !== last) edges.push(i);
    last = column;
  }
  edges.push(end);
  const m = edges.length - 1;
  const xs = new Float64Array(2 * m);
  for (let k = 0; k < m; k++) {
    xs[2 * k] = times[edges[k]!]!;
    xs[2 * k + 1] = times[edges[k + 1]! - 1]!;
  }
  return [xs, ...data.slice(1).map((of) => extremes(of!, edges))];
}

function part(of: Values | undefined, begin: number, end: number): Values {
  return ArrayBuffer.isView(of) ? (of as Float64Array).subarray(begin, end) : Array.prototype.slice.call(of, begin, end);
}

function extremes(of: Values, edges: readonly number[]): (number | null)[] {
  const m = edges.length - 1;
  const made = new Array<number | null>(2 * m);
  for (let k = 0; k < m; k++) {
    let low = -1;
    let high = -1;
    const end = edges[k + 1]!;
    for (let i = edges[k]!; i < end; i++) {
      const v = of[i];
      if (v === null || v === undefined || v !== v) continue;
      if (low < 0 || v < of[low]!) low = i;
      if (high < 0 || v > of[high]!) high = i;
    }
    made[2 * k] = low < 0 ? null : of[Math.min(low, high)]!;
    made[2 * k + 1] = low < 0 ? null : of[Math.max(low, high)]!;
  }
  return made;
}
