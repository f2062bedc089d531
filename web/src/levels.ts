// Lines across a panel: what a queue is held to. Those far above all samples are named, and not drawn.

import type uPlot from "uplot";
import { number, quantity } from "./format";
import type { Level, QueueLevel } from "./panels";

/** A level is drawn up to so many times the greatest sample. */
const FAR = 3;
const DASH = [2, 3];

/** As levels of a queue's length: a delay that is aimed at says so. */
export function inPackets(levels: readonly QueueLevel[]): Level[] {
  return levels.map(({ name, packets, delay }) => ({ name: delay !== null && /target|step_th/.test(name) ? `${name} of ${quantity(delay, "s", 3)}` : name, value: packets }));
}

/** Names of equal levels together, from the lowest. */
export function merged(levels: readonly Level[]): Level[] {
  const by = new Map<number, string[]>();
  for (const { name, value } of levels) by.set(value, [...(by.get(value) ?? []), name]);
  return [...by].sort(([a], [b]) => a - b).map(([value, names]) => ({ value, name: names.join(", ").replace(/\b(in|out)\b/g, (word) => word.toUpperCase()) }));
}

/** The greatest value that a picture of samples up to `top` has to show. */
export function reach(levels: readonly Level[], top: number): number {
  return Math.max(top, ...levels.map(({ value }) => value).filter((value) => value <= FAR * top));
}

/** Said in the legend. */
export function inWords(levels: readonly Level[]): string {
  return merged(levels).map(({ name, value }) => `${name}${/\d/.test(name) ? "," : ""} ${number(value, 4)}`).join("; ");
}

type Style = Record<"muted" | "text" | "back" | "font", string>;

/** The lines, behind the samples. */
export function drawLevels(u: uPlot, levels: readonly Level[], style: Style): void {
  const { left, width } = u.bbox;
  const { ctx } = u;
  const pixel = devicePixelRatio || 1;
  ctx.save();
  ctx.strokeStyle = style.muted;
  ctx.lineWidth = pixel;
  ctx.setLineDash(DASH.map((n) => n * pixel));
  for (const { y } of seen(u, levels)) {
    ctx.beginPath();
    ctx.moveTo(left, y);
    ctx.lineTo(left + width, y);
    ctx.stroke();
  }
  ctx.restore();
}

/** Their names, in front of the samples: above the line, at the top below it, and none over another. */
export function nameLevels(u: uPlot, levels: readonly Level[], style: Style): void {
  const { left, top, width } = u.bbox;
  const { ctx } = u;
  const pixel = devicePixelRatio || 1;
  let free = Infinity;
  ctx.save();
  ctx.strokeStyle = style.back;
  ctx.fillStyle = style.text;
  ctx.lineWidth = 4 * pixel;
  ctx.lineJoin = "round";
  ctx.font = `${11 * pixel}px ${style.font}`;
  ctx.textAlign = "right";
  for (const { name, y } of seen(u, levels)) {
    const base = y - 15 * pixel < top ? y + 12 * pixel : y - 5 * pixel;
    if (base > free - 12 * pixel) continue;
    ctx.strokeText(name, left + width - 4 * pixel, base);
    ctx.fillText(name, left + width - 4 * pixel, base);
    free = base;
  }
  ctx.restore();
}

/** From the lowest, with where they are. */
function seen(u: uPlot, levels: readonly Level[]): { name: string; y: number }[] {
  const { top, height } = u.bbox;
  return merged(levels).map(({ name, value }) => ({ name, y: Math.round(u.valToPos(value, "y", true)) })).filter(({ y }) => y >= top && y <= top + height);
}
