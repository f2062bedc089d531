// What can be tried without a browser.

import assert from "node:assert/strict";
import test from "node:test";
import { binned, fitting, sampled, steps } from "../src/bins";
import { decimated, firstFrom } from "../src/decimate";
import { estimated } from "../src/format";
import type { Panel } from "../src/panels";

/** Numbers that are the same each time (xorshift). */
function* drawn(seed: number): Generator<number> {
  let x = seed;
  for (;;) {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    yield (x >>> 0) / 2 ** 32;
  }
}

test("no peak is lost, and nothing is made up", () => {
  const random = drawn(7);
  const next = (): number => random.next().value as number;
  for (let round = 0; round < 60; round++) {
    const n = 1 + Math.floor(next() * 3000);
    const times = Float64Array.from({ length: n }, () => 100 * next()).sort();
    const values = Array.from(times, () => (next() < 0.05 ? null : next() < 0.01 ? 1e6 * next() : next()));
    const columns = 1 + Math.floor(next() * 200);
    const [from, to] = [100 * next() - 5, 100 * next() + 5].sort((a, b) => a - b) as [number, number];
    const [xs, ys] = decimated([times, values], from, to, columns);
    assert.equal(xs.length, ys!.length);
    assert.ok(xs.length <= 4 * columns + 2);
    for (let i = 1; i < xs.length; i++) assert.ok(xs[i]! >= xs[i - 1]!);
    const seen = values.filter((v, i) => v !== null && times[i]! >= from && times[i]! <= to) as number[];
    const kept = Array.from(ys!).filter((v) => v !== null) as number[];
    if (seen.length) {
      assert.ok(Math.max(...kept) >= Math.max(...seen));
      assert.ok(Math.min(...kept) <= Math.min(...seen));
    }
    const all = new Set(values);
    for (const v of ys!) assert.ok(all.has(v ?? null));
    // A line goes on to the edge, where there is a sample beyond it.
    const first = firstFrom(times, from);
    if (first > 0) assert.ok(xs[0]! <= from);
    if (firstFrom(times, to) < n) assert.ok(xs[xs.length - 1]! >= to);
  }
});

test("where every sample has room, all are drawn", () => {
  const times = Float64Array.from({ length: 100 }, (_, i) => i);
  const values = times.map((t) => t * t);
  assert.equal(decimated([times, values], 0, 99, 50)[0], times);
  assert.deepEqual([...decimated([times, values], 20, 30, 50)[1]!], [...values.subarray(19, 32)]);
});

test("a gap that is wider than a column stays", () => {
  const times = Float64Array.from({ length: 1000 }, (_, i) => i);
  const values = Array.from(times, (t) => (t >= 400 && t < 600 ? null : 1));
  const [xs, ys] = decimated([times, values], 0, 999, 50);
  const there = Array.from(xs).filter((_, i) => ys![i] === null);
  assert.ok(there[0]! >= 400 && there[0]! <= 420, String(there[0]));
  assert.ok(there[there.length - 1]! >= 580 && there[there.length - 1]! < 600);
});

/** Rates of flows that share 3 Mbit/s, each packet of 1500 B counted whole when it has arrived, sampled each 10 ms for 60 s. */
function comb(flows: number): Panel {
  const random = drawn(3);
  const t = Float64Array.from({ length: 6001 }, (_, i) => i / 100);
  const lines = Array.from({ length: flows }, (_, n) => ({ name: `f.${n}`, t, v: new Float64Array(t.length), n }));
  for (let at = 0.5; at < 60; at += 0.004) {
    const flow = Math.floor(flows * (random.next().value as number));
    lines[flow]!.v[Math.ceil(at * 100)]! += (1500 * 8) / 0.01;
  }
  // A handshake each.
  for (const { v } of lines) v[3] = (40 * 8) / 0.01;
  return { id: "received", title: "Throughput", unit: "bit/s", lines };
}

const total = (panel: Panel, i: number): number => panel.lines.reduce((sum, { v }) => sum + v[i]!, 0);

test("samples of 10 ms are a comb above the link's rate; in the chosen bin they are lines at most a packet above it", () => {
  const panel = comb(4);
  const like = sampled(panel)!;
  assert.equal(Math.round(like.packet), 1500);
  assert.ok(Math.abs(like.every - 0.01) < 1e-9);
  const raw = panel.lines[0]!.t.map((_, i) => total(panel, i));
  assert.ok(Math.max(...raw) > 3.5e6);
  for (const width of [1200, 330]) {
    const bin = fitting(like, 60, width);
    const made = binned(panel, bin);
    const points = made.lines[0]!.t.length;
    assert.ok(points <= width / 4 && points >= 40, `${points} in ${width} pixels`);
    const sums = Array.from(made.lines[0]!.t, (_, i) => total(made, i));
    assert.ok(Math.max(...sums) <= 3e6 + (1500 * 8) / bin);
    // No line falls to nothing, nor is any near the whole link: what a comb does at each sample.
    for (const { v } of made.lines) for (const x of v.slice(2)) assert.ok(x > 0.1e6 && x < 2e6, String(x));
  }
});

test("bins hold every byte, each where the middle of its samples is", () => {
  const panel = comb(3);
  for (const bin of [0.02, 0.05, 0.5, 7]) {
    const made = binned(panel, bin);
    made.lines.forEach(({ t, v }, n) => {
      const ends = Array.from({ length: t.length }, (_, k) => Math.min(60, (k + 1) * bin));
      const bits = v.reduce((sum, x, k) => sum + x * (ends[k]! - k * bin), 0);
      const all = panel.lines[n]!.v.reduce((sum, x) => sum + x * 0.01, 0);
      assert.ok(Math.abs(bits - all) < 1e-6 * all, `${bits}, not ${all}, over ${bin} s`);
      t.forEach((at, k) => assert.ok(Math.abs(at - (k * bin + ends[k]!) / 2) < 1e-9));
    });
  }
});

test("a gap is no rate, and what is read at a moment has no bins", () => {
  const panel = comb(1);
  panel.lines[0]!.v.fill(NaN, 1001, 2501);
  const { v } = binned(panel, 5).lines[0]!;
  assert.deepEqual(Array.from(v, Number.isNaN).map(Number), [0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]);
  assert.equal(sampled({ ...panel, unit: "packets" }), null);
});

test("a bin is a round number of samples, and narrower in a shorter stretch of time", () => {
  assert.deepEqual(steps(0.1, 6), [0.1, 0.2, 0.5, 1, 2, 5]);
  const like = { every: 0.01, packet: 1500, rate: 90e3 };
  assert.equal(fitting(like, 60, 1200), 0.5);
  assert.equal(fitting(like, 2, 1200), 0.05);
  assert.equal(fitting(like, 0.1, 1200), 0.01);
  // Coarse samples stay as they are.
  assert.equal(fitting({ ...like, every: 1 }, 60, 1200), 1);
});

test("a mean is printed inside its interval, with the bounds' decimals", () => {
  const random = drawn(11);
  const next = (): number => random.next().value as number;
  for (let round = 0; round < 20000; round++) {
    const size = 10 ** (14 * next() - 4);
    const mean = next() < 0.05 ? 0 : (next() < 0.1 ? -1 : 1) * size * (next() < 0.3 ? 1 - 1e-4 * next() : next());
    const arm = (): number => (next() < 0.1 ? 0 : size * 10 ** (-6 * next()) * next());
    const [lo, hi] = [mean - arm(), mean + arm()];
    const text = estimated(mean, [lo, hi], ["bit/s", "s", "B", "1", "%", "packets"][round % 6]!);
    const printed = /^(.+) \[(.+), ([^\]]+)\]/.exec(text.replaceAll("−", "-"))!.slice(1);
    const [m, l, h] = printed.map(Number) as [number, number, number];
    assert.ok(l <= m && m <= h, `${text} of ${mean} [${lo}, ${hi}]`);
    assert.equal(new Set(printed.map((x) => x.split(".")[1]?.length)).size, 1, text);
  }
});

test("intervals as they are written", () => {
  assert.equal(estimated(2.998e6, [2.997e6, 2.9994e6], "bit/s"), "2.998 [2.997, 2.999] Mbit/s");
  assert.equal(estimated(0.9997, [0.999, 1], "1"), "0.9997 [0.9990, 1.0000]");
  assert.equal(estimated(100, [29.24, 100], "%"), "100.0 [29.2, 100.0] %");
  assert.equal(estimated(0, [0, 0.632], "1"), "0.000 [0.000, 0.632]");
  assert.equal(estimated(1.234e-5, [0, 0.63212345], "1"), "0.00001 [0.00000, 0.63212]");
  assert.equal(estimated(0, [0, 0], "packets"), "0 [0, 0] packets");
  assert.equal(estimated(1608.3, [1544.6, 1672], "packets"), "1608 [1545, 1672] packets");
  assert.equal(estimated(-0.0101, [-0.02, 0.00001], "s"), "−10.10 [−20.00, 0.01] ms");
  assert.equal(estimated(5e-3, [null, null], "s"), "5 ms");
});
