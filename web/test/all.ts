// What can be tried without a browser.

import assert from "node:assert/strict";
import test from "node:test";
import { decimated, firstFrom } from "../src/decimate";

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
