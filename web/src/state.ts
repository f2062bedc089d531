// What is shown, in the address: a link to it is a link to the same view.

export interface State {
  /** `list`, `run`, `sweep`, `compare`. */
  view: string;
  query: Record<string, string>;
}

/** The state that an address's fragment names: `#/run?id=a&seed=1`. */
export function parse(hash: string): State {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return { view: path || "list", query: Object.fromEntries(new URLSearchParams(search)) };
}

/** The fragment of a state; what is empty is left out. */
export function address(view: string, query: Record<string, string | number | null | undefined>): string {
  const kept = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(kept.map(([key, value]) => [key, String(value)])).toString();
  return `#/${view === "list" ? "" : view}${search ? `?${search}` : ""}`;
}

/** The present one. */
export function current(): State {
  return parse(location.hash);
}

/** Change some of the present state without a new view: the address follows what is done. */
export function keep(changes: Changes): void {
  flush();
  const { view, query } = current();
  history.replaceState(null, "", address(view, { ...query, ...changes }));
}

type Changes = Record<string, string | number | null | undefined>;

/** How long a hand that moves may rest: to change the address takes longer than to draw, and browsers refuse a hundred changes in a row. */
const REST = 150;
let waiting: { hash: string; changes: Changes; timer: number } | null = null;

/** The same once the hand rests, for what is dragged or typed. */
export function keepSoon(changes: Changes): void {
  if (waiting && waiting.hash !== location.hash) drop();
  const merged = { ...waiting?.changes, ...changes };
  drop();
  waiting = { hash: location.hash, changes: merged, timer: setTimeout(flush, REST) };
}

function drop(): void {
  if (waiting) clearTimeout(waiting.timer);
  waiting = null;
}

/** What waits is kept, unless another view is shown by now. */
function flush(): void {
  const was = waiting;
  drop();
  if (was && was.hash === location.hash) keep(was.changes);
}
