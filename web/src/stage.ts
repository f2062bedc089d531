// The player's picture at one moment: the queue packet by packet, averages, thresholds, the drop, the windows, and the length over time.

import { h } from "./dom";
import { number } from "./format";
import type { Level } from "./panels";
import { merged } from "./levels";
import { ARRIVES, DROPPED, LEAVES, sampleAt, type Lengths, type Replay } from "./replay";
import { CYCLE, look } from "./theme";

export interface Line {
  name: string;
  t: Float64Array;
  v: Float64Array;
}

export interface Shown {
  link: string;
  from: number;
  to: number;
  rate: number;
  flows: readonly string[];
  causes: readonly string[];
  levels: readonly Level[];
  averages: readonly Line[];
  windows: readonly (Line & { flow: number })[];
}

/** IN, OUT, red. */
export const COLOURS = ["#2f9e77", "#e08e0b", "#d1495b"] as const;
const NAMES = ["IN", "OUT", "red"] as const;
const FALLS = 0.7;
/** As many windows have room. */
const WINDOWS = 12;

export interface Size {
  width: number;
  height: number;
}

export class Stage {
  private readonly lengths: Lengths;
  private readonly most: number;
  private readonly top: number;
  /** The size of each flow's greatest window. */
  private readonly widest: number;
  private readonly rows: readonly (Line & { flow: number })[];
  private still: { key: string; canvas: HTMLCanvasElement } | null = null;
  /** Where time is told: in pixels of the canvas. */
  strip = { left: 0, right: 1, top: 0, bottom: 1 };

  constructor(
    private readonly replay: Replay,
    private readonly shown: Shown,
  ) {
    this.lengths = replay.lengths();
    this.most = Math.max(4, ...this.lengths.all);
    const near = shown.levels.map(({ value }) => value).filter((value) => value <= 3 * this.most);
    this.top = Math.max(this.most, ...near) * 1.08;
    this.rows = [...shown.windows].filter(({ v }) => v.length).slice(0, WINDOWS);
    this.widest = Math.max(1, ...this.rows.flatMap(({ v }) => [...v]));
  }

  /** How high a canvas of this width has to be. */
  height(width: number): number {
    return 162 + 130 + (width < 640 ? 20 + 20 * this.rows.length : 0) + 16;
  }

  /** Draw the moment `time`; a second of it takes `1 / speed` seconds of whoever looks. */
  draw(ctx: CanvasRenderingContext2D, { width, height }: Size, time: number, speed: number): void {
    const style = look();
    this.replay.seek(time);
    ctx.fillStyle = style.back;
    ctx.fillRect(0, 0, width, height);
    ctx.font = `12px ${style.font}`;
    ctx.textBaseline = "alphabetic";
    const wide = width >= 640;
    const aside = wide ? Math.min(260, width * 0.27) : 0;
    const right = width - aside - (aside ? 24 : 8);
    this.queue(ctx, { left: 8, right, top: 8, bottom: 154 }, time, speed);
    this.overTime(ctx, { left: 8, right, top: 172, bottom: 282 }, time);
    if (wide) this.windows(ctx, { left: right + 24, right: width - 8, top: 8, bottom: 282 }, time, speed);
    else this.windows(ctx, { left: 8, right: width - 8, top: 302, bottom: height - 4 }, time, speed);
  }

  private queue(ctx: CanvasRenderingContext2D, box: Box, time: number, speed: number): void {
    const style = look();
    const { events } = this.replay;
    const { waiting, left, dropped } = this.replay;
    const link = Math.min(90, (box.right - box.left) * 0.14);
    const head = box.right - link - 10;
    const each = (head - box.left) / this.top;
    const gap = each > 4 ? 1.5 : each > 2 ? 0.5 : 0;
    const y = box.top + 46;
    const high = 40;
    ctx.textAlign = "left";
    ctx.fillStyle = style.muted;
    const green = waiting.filter((i) => events.colour[i] === 0).length;
    ctx.fillText(`${waiting.length} wait: ${green} IN, ${waiting.length - green} OUT`, box.left, box.top + 12);
    // The link, and the packet on it.
    ctx.strokeStyle = style.muted;
    ctx.lineWidth = 1;
    ctx.strokeRect(head + 6.5, y - 3.5, link, high + 7);
    ctx.textAlign = "right";
    ctx.fillText(this.shown.link, box.right, box.top + 12);
    const served = left < 0 ? 1 : ((time - events.t[left]!) * this.shown.rate) / (8 * events.size[left]!);
    if (served < 1) {
      ctx.fillStyle = COLOURS[events.colour[left]!]!;
      ctx.fillRect(head + 8 + served * (link - Math.max(each, 6) - 3), y, Math.max(each - gap, 5), high);
    }
    // The others move up while the one that left is sent, and for a fifth of a second of the viewer's at most.
    const moved = left < 0 ? 1 : Math.min(1, Math.max(served, (time - events.t[left]!) / speed / 0.2));
    const shift = (1 - moved) * each;
    waiting.forEach((i, k) => {
      const came = Math.min(1, (time - events.t[i]!) / speed / 0.15);
      const x = head - (k + 1) * each - shift - (1 - came) * Math.min(60, head - (k + 1) * each - box.left);
      ctx.fillStyle = COLOURS[events.colour[i]!]!;
      ctx.globalAlpha = 0.35 + 0.65 * came;
      ctx.fillRect(x, y, Math.max(each - gap, 1), high);
      if (each > 7) {
        ctx.globalAlpha = 1;
        ctx.fillStyle = CYCLE[events.flow[i]! % CYCLE.length]!;
        ctx.fillRect(x, y + high + 2, each - gap, 4);
      }
    });
    ctx.globalAlpha = 1;
    // Thresholds, from the head.
    ctx.strokeStyle = style.text;
    ctx.fillStyle = style.text;
    ctx.font = `11px ${style.font}`;
    let free = [Infinity, Infinity];
    for (const { name, value } of merged(this.shown.levels)) {
      if (value > this.top) continue;
      const x = Math.round(head - value * each) + 0.5;
      ctx.setLineDash([3, 3]);
      ctx.beginPath();
      ctx.moveTo(x, y - 8);
      ctx.lineTo(x, y + high + 10);
      ctx.stroke();
      ctx.setLineDash([]);
      const said = /\d/.test(name) ? name : `${name} ${number(value, 3)}`;
      const wide = ctx.measureText(said).width;
      // On whichever of two lines has room.
      const row = free.findIndex((end) => x + wide / 2 < end);
      const start = Math.max(box.left, x - wide / 2);
      if (row < 0) continue;
      free[row] = start - 8;
      ctx.textAlign = "left";
      ctx.fillText(said, start, y + high + 22 + 13 * row);
    }
    let before = NaN;
    for (const line of this.shown.averages) {
      const v = sampleAt(line.t, line.v, time);
      if (!Number.isFinite(v)) continue;
      const x = head - Math.min(v, this.top) * each;
      ctx.beginPath();
      ctx.moveTo(x, y - 2);
      ctx.lineTo(x - 5, y - 10);
      ctx.lineTo(x + 5, y - 10);
      ctx.closePath();
      ctx.fill();
      ctx.textAlign = "center";
      const row = Math.abs(x - before) < 72 ? 12 : 0;
      ctx.fillText(`${line.name} ${number(v, 3)}`, Math.min(Math.max(x, box.left + 28), head - 28), y - 12 - row);
      before = row ? NaN : x;
    }
    // What is dropped falls from where it would have waited.
    for (const i of dropped) {
      const age = (time - events.t[i]!) / speed / FALLS;
      if (age > 1) continue;
      const x = Math.max(box.left, head - (this.lengths.all[i]! + 1) * each);
      ctx.globalAlpha = 1 - age * age;
      ctx.fillStyle = COLOURS[events.colour[i]!]!;
      ctx.fillRect(x, y + 8 + 62 * age, Math.max(each - gap, 5), high * (1 - 0.4 * age));
      ctx.strokeStyle = "#d1495b";
      ctx.lineWidth = 2;
      ctx.strokeRect(x, y + 8 + 62 * age, Math.max(each - gap, 5), high * (1 - 0.4 * age));
      ctx.lineWidth = 1;
      ctx.textAlign = "left";
      ctx.fillStyle = "#d1495b";
      const cause = this.shown.causes[events.cause[i]!] ?? "";
      ctx.fillText(cause.replaceAll("_", " "), x + Math.max(each, 5) + 4, y + 34 + 62 * age);
    }
    ctx.globalAlpha = 1;
  }

  private overTime(ctx: CanvasRenderingContext2D, box: Box, time: number): void {
    const { from, to } = this.shown;
    this.strip = box;
    // It does not move: drawn once for each size and theme.
    const scale = ctx.getTransform().a;
    const key = [box.right, scale, look().back].join();
    if (this.still?.key !== key) {
      const canvas = h("canvas", { width: Math.ceil((box.right + 8) * scale), height: Math.ceil((box.bottom - box.top + 20) * scale) });
      const own = canvas.getContext("2d")!;
      own.setTransform(scale, 0, 0, scale, 0, (4 - box.top) * scale);
      this.whole(own, box);
      this.still = { key, canvas };
    }
    const { canvas } = this.still;
    ctx.drawImage(canvas, 0, box.top - 4, canvas.width / scale, canvas.height / scale);
    const x = box.left + ((time - from) / (to - from)) * (box.right - box.left);
    ctx.fillStyle = look().text;
    ctx.fillRect(x - 1, box.top - 3, 2, box.bottom - box.top + 6);
  }

  /** The whole stretch: lengths by colour, averages, thresholds, drops. */
  private whole(ctx: CanvasRenderingContext2D, box: Box): void {
    const style = look();
    const { t, what } = this.replay.events;
    const { from, to } = this.shown;
    ctx.fillStyle = style.back;
    ctx.fillRect(0, box.top - 4, box.right + 8, box.bottom - box.top + 20);
    const px = (at: number): number => box.left + ((at - from) / (to - from)) * (box.right - box.left);
    const py = (n: number): number => box.bottom - (n / this.top) * (box.bottom - box.top);
    const area = (values: Uint16Array, colour: string): void => {
      ctx.fillStyle = colour;
      ctx.beginPath();
      ctx.moveTo(box.left, box.bottom);
      let last = box.left;
      for (let i = 0; i < t.length; i++) {
        const x = Math.max(box.left, px(t[i]!));
        if (i) ctx.lineTo(x, py(values[i - 1]!));
        ctx.lineTo(x, py(values[i]!));
        last = x;
      }
      ctx.lineTo(Math.max(last, px(to)), py(values[t.length - 1] ?? 0));
      ctx.lineTo(box.right, box.bottom);
      ctx.fill();
    };
    area(this.lengths.all, `${COLOURS[1]}99`);
    area(this.lengths.green, `${COLOURS[0]}cc`);
    ctx.strokeStyle = style.muted;
    ctx.setLineDash([2, 3]);
    for (const { value } of this.shown.levels) {
      if (value > this.top) continue;
      ctx.beginPath();
      ctx.moveTo(box.left, py(value));
      ctx.lineTo(box.right, py(value));
      ctx.stroke();
    }
    ctx.setLineDash([]);
    ctx.strokeStyle = style.text;
    for (const line of this.shown.averages) {
      ctx.beginPath();
      line.t.forEach((at, i) => (i ? ctx.lineTo(px(at), py(line.v[i]!)) : ctx.moveTo(px(at), py(line.v[i]!))));
      ctx.stroke();
    }
    ctx.fillStyle = "#d1495b";
    for (let i = 0; i < t.length; i++) if (what[i] === DROPPED) ctx.fillRect(px(t[i]!) - 0.75, box.top, 1.5, 9);
    ctx.strokeStyle = style.muted;
    ctx.strokeRect(box.left + 0.5, box.top + 0.5, box.right - box.left - 1, box.bottom - box.top - 1);
    ctx.font = `11px ${style.font}`;
    ctx.fillStyle = style.muted;
    ctx.textAlign = "left";
    ctx.fillText(`${number(from, 5)} s`, box.left, box.bottom + 13);
    ctx.textAlign = "right";
    ctx.fillText(`${number(to, 5)} s`, box.right, box.bottom + 13);
  }

  private windows(ctx: CanvasRenderingContext2D, box: Box, time: number, speed: number): void {
    const style = look();
    const { events, dropped } = this.replay;
    ctx.font = `12px ${style.font}`;
    ctx.fillStyle = style.muted;
    ctx.textAlign = "left";
    ctx.fillText(this.rows.length ? `Windows (segments), 0 to ${number(this.widest, 3)}` : "No windows: nothing here is TCP.", box.left, box.top + 12);
    const high = Math.min(20, (box.bottom - box.top - 20) / Math.max(1, this.rows.length));
    const name = Math.min(84, (box.right - box.left) * 0.36);
    this.rows.forEach((row, k) => {
      const y = box.top + 20 + k * high;
      const v = sampleAt(row.t, row.v, time);
      const hit = dropped.some((i) => events.flow[i] === row.flow && (time - events.t[i]!) / speed < FALLS);
      ctx.fillStyle = hit ? "#d1495b" : style.text;
      const said = this.shown.flows[row.flow] ?? "";
      ctx.fillText(said.length > 12 ? `${said.slice(0, 11)}…` : said, box.left, y + high * 0.7);
      ctx.fillStyle = CYCLE[row.flow % CYCLE.length]!;
      const most = box.right - box.left - name - 30;
      if (Number.isFinite(v)) ctx.fillRect(box.left + name, y + 3, Math.max(1, (v / this.widest) * most), high - 6);
      ctx.fillStyle = style.muted;
      ctx.fillText(Number.isFinite(v) ? number(v, 3) : "–", box.left + name + 4 + (Number.isFinite(v) ? (v / this.widest) * most : 0), y + high * 0.7);
    });
  }

  /** What the moment is in words. */
  said(time: number): string {
    const { waiting, events } = { waiting: this.replay.waiting, events: this.replay.events };
    const of = NAMES.map((name, c) => `${waiting.filter((i) => events.colour[i] === c).length} ${name}`).slice(0, 2);
    const averages = this.shown.averages.map((line) => [line.name, sampleAt(line.t, line.v, time)] as const).filter(([, v]) => Number.isFinite(v));
    return [`${time.toFixed(6)} s: ${waiting.length} packets wait (${of.join(", ")})`, ...averages.map(([name, v]) => `${name} ${number(v, 4)}`)].join(", ");
  }

  /** The time of the next event of a kind, from one on; null where there is none. */
  following(time: number, kinds: readonly number[] = [ARRIVES, LEAVES, DROPPED]): number | null {
    const { t, what } = this.replay.events;
    for (let i = 0; i < t.length; i++) if (t[i]! > time && kinds.includes(what[i]!)) return t[i]!;
    return null;
  }

  preceding(time: number): number | null {
    const { t } = this.replay.events;
    for (let i = t.length - 1; i >= 0; i--) if (t[i]! < time) return t[i]!;
    return null;
  }
}

interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}
