// Elements in few words.

type Child = Node | string | number | null | undefined | false;
type Value = string | number | boolean | null | undefined | EventListener | ((event: never) => void);

/** An element: attributes (a function is a listener, false and null leave one out) and children. */
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Record<string, Value> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value as EventListener);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, String(value));
  }
  put(made, ...children);
  return made;
}

/** Children at the end of an element. */
export function put(into: Element, ...children: Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) into.append(child instanceof Node ? child : String(child));
  }
}

/** Have a screen reader say it. */
export function tell(text: string): void {
  const place = document.getElementById("told");
  if (place) place.textContent = text;
}

let last = 0;
/** An id that no other element has. */
export function fresh(prefix: string): string {
  last += 1;
  return `${prefix}-${last}`;
}
