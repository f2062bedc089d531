// Colours, dashes and marks: those of the reports, told apart by people with any colour vision, on white and on black.

export const CYCLE = ["#2c7fd6", "#e08e0b", "#2f9e77", "#c25b9e", "#7d8797", "#8a5cd1", "#b5651d", "#00a3b4", "#d1495b", "#6b8e23"] as const;
export const DASHES: readonly (readonly number[])[] = [[], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4], [12, 3], [1, 3]];

/** Colour of the n-th line. */
export function colour(n: number): string {
  return CYCLE[n % CYCLE.length]!;
}

/** Dash of the n-th line: ten colours and seven dashes tell seventy lines apart. */
export function dash(n: number): readonly number[] {
  return DASHES[n % DASHES.length]!;
}

export interface Look {
  back: string;
  text: string;
  muted: string;
  line: string;
  font: string;
}

/** What the style sheet says now. */
export function look(): Look {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(name).trim();
  return { back: of("--back"), text: of("--text"), muted: of("--muted"), line: of("--line"), font: of("--font") };
}

const dark = matchMedia("(prefers-color-scheme: dark)");

/** Call when light and dark change. */
export function onTheme(work: () => void, signal: AbortSignal): void {
  dark.addEventListener("change", work, { signal });
}
