// Numbers as a person writes them; the same rules as the Python side.

const STEPS: Record<string, readonly (readonly [number, string])[]> = {
  "bit/s": [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]],
  s: [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]],
  B: [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]],
};

/** Factor and unit in which a value of this size reads well. */
export function scale(unit: string, size: number): readonly [number, string] {
  const steps = STEPS[unit];
  if (!steps || size === 0 || !Number.isFinite(size)) return [1, unit === "1" ? "" : unit];
  return steps.find(([step]) => Math.abs(size) >= step * (1 - 1e-12)) ?? steps[steps.length - 1]!;
}

/** Significant digits without an exponent where that can be read. */
export function number(x: number, digits = 4): string {
  if (!Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const exponent = Math.floor(Math.log10(Math.abs(x)));
  if (exponent < -4) return x.toExponential(digits - 1).replace("-", "−");
  const text = x.toFixed(Math.min(20, Math.max(0, digits - 1 - exponent)));
  return (text.includes(".") ? text.replace(/\.?0+$/, "") : text).replace("-", "−");
}

/** A number with its unit. */
export function quantity(x: number | null | undefined, unit: string, digits = 4): string {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  const [factor, name] = scale(unit, x);
  return `${number(x / factor, digits)}${name ? ` ${name}` : ""}`;
}

/** A mean and its bounds with as many decimals each: what lies between two is printed so, too. Of a mean that is far smaller than a bound, fewer count. */
function together(values: readonly number[], digits = 4): string[] {
  const most = Math.max(...values.map(Math.abs));
  const exponent = Math.floor(Math.log10(Math.max(Math.abs(values[0]!), most / 10) || 1));
  const texts = values.map((x) => x.toFixed(Math.min(20, Math.max(0, digits - 1 - exponent))).replace(/^-(?=[0.]*$)/, ""));
  // Zeros at the end of all of them say nothing.
  const spare = Math.min(...texts.map((text) => (text.includes(".") ? text.length - text.replace(/\.?0+$/, "").length : 0)));
  return texts.map((text) => text.slice(0, text.length - spare).replace("-", "−"));
}

/** A mean with its interval. */
export function estimated(mean: number, ci95: readonly (number | null)[] | undefined, unit: string): string {
  const [lo, hi] = ci95 ?? [null, null];
  if (lo === null || lo === undefined || hi === null || hi === undefined || !Number.isFinite(mean)) return quantity(mean, unit);
  const [factor, name] = scale(unit, mean || Math.max(Math.abs(lo), Math.abs(hi)));
  const [middle, low, high] = together([mean / factor, lo / factor, hi / factor]);
  return `${middle} [${low}, ${high}]${name ? ` ${name}` : ""}`;
}

/** A file's name from words. */
export function fileName(...words: (string | number)[]): string {
  return words
    .join(" ")
    .toLowerCase()
    .normalize("NFKD")
    .replace(/[^a-z0-9.+]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 120);
}
