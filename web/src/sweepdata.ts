// What the server tells of a sweep.

/** What was varied. */
export interface Axis {
  key: string;
  short: string;
  unit: string;
  values: number | null;
  texts: string[];
}

/** All its runs; arrays are given by their number. */
export interface Sweep {
  id: string;
  title: string;
  version: string;
  digest: string;
  text: string;
  set: [string, string][];
  seeds: number[];
  design: string;
  axes: Axis[];
  settings: number;
  problems: string[];
  setting: number;
  seed: number;
  metrics: { name: string; unit: string; values: number }[];
}
