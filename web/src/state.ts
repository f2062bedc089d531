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
export function keep(changes: Record<string, string | number | null | undefined>): void {
  const { view, query } = current();
  history.replaceState(null, "", address(view, { ...query, ...changes }));
}
