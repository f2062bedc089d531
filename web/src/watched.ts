// What the server tells of a running inprofiled.

/** A class or a customer. */
export interface Row {
  kind: "class" | "customer";
  direction: string;
  name: string;
  contract: number | null;
  group: string | null;
}

/** All of a router at one moment, and the chosen rows' history. */
export interface Watched {
  router: string;
  /** Why there is nothing new; null while the router answers. */
  error: string | null;
  /** When it answered last, and now, in s since the watch began. */
  seen: number;
  at: number;
  began: string;
  every: number;
  restarts: number;
  results: boolean;
  version: string;
  uptime: number;
  mode: string;
  trouble: string[];
  notes: string[];
  ports: [string, string][];
  columns: string[];
  rows: Row[];
  now: number;
  t: number;
  history: { id: string; series: Record<string, number> }[];
}
