// Where a curve bends: the point farthest from the chord between its ends (Satopää et al. 2011, "Kneedle", without smoothing).

/** As far from the chord as a bend has to be, of both ranges scaled to 1. */
const BENT = 0.12;

/** The index of the knee of a curve that is sorted by x; null where it is nearly straight or too short. */
export function knee(xs: readonly number[], ys: readonly number[]): number | null {
  const n = xs.length;
  if (n < 4) return null;
  const x0 = xs[0]!;
  const dx = xs[n - 1]! - x0;
  const low = Math.min(...ys);
  const dy = Math.max(...ys) - low;
  if (!(dx > 0) || !(dy > 0)) return null;
  const y0 = (ys[0]! - low) / dy;
  const y1 = (ys[n - 1]! - low) / dy;
  let best = -1;
  let far = BENT;
  for (let i = 1; i < n - 1; i++) {
    const x = (xs[i]! - x0) / dx;
    const off = Math.abs((ys[i]! - low) / dy - (y0 + (y1 - y0) * x));
    if (off > far) {
      far = off;
      best = i;
    }
  }
  return best < 0 ? null : best;
}
