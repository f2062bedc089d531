// The samples of a panel's lines as uPlot wants them.

import uPlot from "uplot";
import type { Panel } from "./panels";
import { scale } from "./format";

/** One table of times for all lines, and values in a unit that reads well. */
export function aligned(panel: Panel): { data: uPlot.AlignedData; factor: number; unit: string } {
  let most = 0;
  for (const line of panel.lines) for (const x of line.v) if (Math.abs(x) > most) most = Math.abs(x);
  const [factor, unit] = scale(panel.unit, most);
  const first = panel.lines[0]?.t;
  const values = panel.lines.map((line) => scaled(line.v, factor));
  if (!first) return { data: [[0, 1]], factor, unit };
  if (panel.lines.every((line) => line.t === first || sameTimes(line.t, first))) {
    return { data: [first, ...values], factor, unit };
  }
  const tables = panel.lines.map((line, i) => [Array.from(line.t), values[i]!] as uPlot.AlignedData);
  return { data: uPlot.join(tables, panel.lines.map(() => [0, 1])), factor, unit };
}

/** Gaps are null; an array without any stays as it is. */
function scaled(values: Float64Array, factor: number): Float64Array | (number | null)[] {
  let gaps = false;
  const made = new Float64Array(values.length);
  for (let i = 0; i < values.length; i++) {
    made[i] = values[i]! / factor;
    if (made[i] !== made[i]) gaps = true;
  }
  return gaps ? Array.from(made, (x) => (Number.isNaN(x) ? null : x)) : made;
}

function sameTimes(a: Float64Array, b: Float64Array): boolean {
  return a.length === b.length && a.every((x, i) => x === b[i]);
}
