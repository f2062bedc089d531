// A table that can be sorted and filtered, of some thousand rows.

import { h, put } from "./dom";

export interface Column<T> {
  head: string;
  /** What it is sorted and filtered by. */
  value: (row: T) => string | number | null;
  /** What is shown; default: the value. */
  show?: (row: T) => Node | string;
  numeric?: boolean;
}

/** As many rows are drawn; a button draws more. */
const PAGE = 120;
/** As many of them come first, more than a screen has; the others in the next idle moment. */
const FIRST = 40;

/** The table, with `filter` to show only the rows that have all words of a text. */
export class Table<T> {
  readonly root: HTMLElement;
  private readonly body = h("tbody");
  private readonly more = h("p", { class: "muted more", hidden: true });
  private sorted: { column: number; down: boolean } | null = null;
  private words: string[] = [];
  private room = PAGE;
  private later: (() => void) | null = null;
  private readonly heads: HTMLElement[] = [];
  private texts: string[];

  constructor(
    private readonly columns: readonly Column<T>[],
    private rows: readonly T[],
    private readonly options: { caption: string; rowClass?: (row: T) => string; text?: (row: T) => string; changed?: (shown: number) => void; sorted?: { column: number; down: boolean } },
  ) {
    this.texts = this.textsOf(rows);
    const head = h("tr");
    columns.forEach((column, i) => {
      const button = h("button", { type: "button", click: () => this.sort(i) }, column.head);
      const cell = h("th", { scope: "col", class: column.numeric ? "n" : null }, button);
      this.heads.push(cell);
      put(head, cell);
    });
    const table = h("table", {}, h("caption", { class: "unseen" }, options.caption), h("thead", {}, head), this.body);
    this.root = h("div", {}, h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": options.caption }, table), this.more);
    if (options.sorted) this.sortBy(options.sorted.column, options.sorted.down);
    else this.draw();
  }

  /** Other rows in place of these, in the same order and with the same filter; what has the focus keeps it. */
  renew(rows: readonly T[]): void {
    this.rows = rows;
    this.texts = this.textsOf(rows);
    const focused = this.body.contains(document.activeElement) ? document.activeElement!.getAttribute("data-key") : null;
    this.draw();
    if (focused !== null) [...this.body.querySelectorAll<HTMLElement>("[data-key]")].find((e) => e.dataset["key"] === focused)?.focus({ preventScroll: true });
  }

  private textsOf(rows: readonly T[]): string[] {
    const text = this.options.text ?? ((row: T): string => this.columns.map((c) => c.value(row) ?? "").join(" "));
    return rows.map((row) => text(row).toLowerCase());
  }

  /** Show the rows that have all these words. */
  filter(text: string): void {
    this.words = text.toLowerCase().split(/\s+/).filter(Boolean);
    this.room = PAGE;
    this.draw();
  }

  private sort(column: number): void {
    this.sortBy(column, this.sorted?.column === column ? !this.sorted.down : false);
  }

  private sortBy(column: number, down: boolean): void {
    this.sorted = { column, down };
    this.heads.forEach((head, i) => {
      if (i === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.draw();
  }

  private draw(): void {
    let shown = this.rows.map((row, i) => ({ row, text: this.texts[i]! }));
    if (this.words.length) shown = shown.filter(({ text }) => this.words.every((word) => text.includes(word)));
    if (this.sorted) {
      const { column, down } = this.sorted;
      const of = this.columns[column]!.value;
      const sign = down ? -1 : 1;
      shown.sort((a, b) => sign * compare(of(a.row), of(b.row)));
    }
    // A table that is drawn anew keeps its height.
    const first = this.body.childElementCount ? this.room : FIRST;
    this.later?.();
    this.body.replaceChildren(this.made(shown.slice(0, first)));
    if (first < Math.min(this.room, shown.length)) {
      const rest = setTimeout(() => this.body.append(this.made(shown.slice(first, this.room))), 30);
      this.later = () => clearTimeout(rest);
    }
    this.more.hidden = shown.length <= this.room;
    this.more.replaceChildren(
      `${this.room.toLocaleString("en")} of ${shown.length.toLocaleString("en")} rows. `,
      h(
        "button",
        {
          type: "button",
          class: "small",
          click: () => {
            this.room += 4 * PAGE;
            this.draw();
          },
        },
        "Show more",
      ),
    );
    this.options.changed?.(shown.length);
  }

  /** Rows as elements. */
  private made(shown: readonly { row: T }[]): DocumentFragment {
    const made = document.createDocumentFragment();
    for (const { row } of shown) {
      const line = h("tr", { class: this.options.rowClass?.(row) || null });
      this.columns.forEach((column, i) => {
        const content = column.show ? column.show(row) : (column.value(row) ?? "–");
        put(line, i === 0 ? h("th", { scope: "row", class: column.numeric ? "n" : null }, content) : h("td", { class: column.numeric ? "n" : null }, content));
      });
      made.append(line);
    }
    return made;
  }
}

function compare(a: string | number | null, b: string | number | null): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}
