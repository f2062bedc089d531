// Pictures to keep: SVG, PNG, and the figures as CSV, each with where it comes from.

import { fresh, h } from "./dom";
import { fileName, number } from "./format";
import { look } from "./theme";

export interface SavedLine {
  name: string;
  colour: string;
  dash: readonly number[];
  faint?: boolean;
  /** A mark at each point, too. */
  marks?: boolean;
  /** The index of the point that gets a ring. */
  knee?: number;
  xs: ArrayLike<number>;
  ys: ArrayLike<number | null | undefined>;
  lo?: ArrayLike<number | null | undefined>;
  hi?: ArrayLike<number | null | undefined>;
}

interface Base {
  title: string;
  origin: string;
  /** Words of the file's name. */
  name: (string | number)[];
}

export interface LinePicture extends Base {
  kind: "lines";
  x: { title: string; min: number; max: number; words?: readonly string[] };
  y: { title: string; min: number; max: number };
  lines: SavedLine[];
  /** Lines across, with their names. */
  levels?: readonly { name: string; value: number }[];
  /** Room for so many names, so that pictures side by side are alike; default: as many as lines. */
  legend?: number;
}

/** A picture that is drawn as SVG on the page, with the table behind it. */
export interface DrawnPicture extends Base {
  kind: "drawn";
  svg: () => string;
  head: readonly string[];
  rows: readonly (readonly (string | number | null)[])[];
}

export type Picture = LinePicture | DrawnPicture;

const SAVED_WIDTH = 760;
const HEIGHT = 400;

export function escapeXml(text: string): string {
  return text.replace(/[<>&"]/g, (c) => ({ "<": "&lt;", ">": "&gt;", "&": "&amp;", '"': "&quot;" })[c]!);
}

/** A text in lines of at most so many characters, broken between words where that can be. */
export function wrapped(text: string, room: number): string[] {
  const most = Math.max(8, Math.floor(room));
  const made: string[] = [""];
  for (const word of text.split(" ").flatMap((w) => w.match(new RegExp(`.{1,${most}}`, "gu")) ?? [])) {
    const last = made[made.length - 1]!;
    if (!last) made[made.length - 1] = word;
    else if (last.length + 1 + word.length <= most) made[made.length - 1] = `${last} ${word}`;
    else made.push(word);
  }
  return made;
}

/** Where a picture comes from, at its foot. */
export function originText(origin: readonly string[], height: number, colour: string): string {
  return origin.map((line, i) => `<text x="14" y="${height - 8 - 13 * (origin.length - 1 - i)}" font-size="10" fill="${colour}">${escapeXml(line)}</text>`).join("");
}

/** Round values between two, about `room` of them. */
export function ticks(min: number, max: number, room: number): number[] {
  const span = max - min;
  if (!(span > 0)) return [min];
  const rough = span / room;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough)!;
  const made: number[] = [];
  for (let x = Math.ceil(min / step) * step; x <= max + step * 1e-9; x += step) made.push(Math.abs(x) < step * 1e-9 ? 0 : x);
  return made;
}

/** Lines as SVG in the present colours; on the page, in its width, without the title that stands above it already. */
export function linesSvg(picture: LinePicture, shownIn?: number): string {
  const titled = shownIn === undefined;
  const WIDTH = shownIn ?? SAVED_WIDTH;
  const columns = Math.max(1, Math.floor((WIDTH - 14) / 184));
  const style = look();
  const rows = Math.ceil((picture.legend ?? picture.lines.length) / columns);
  const shown = Math.min(rows, columns === 1 ? 14 : 6);
  const above = titled ? 40 : 16;
  const box = { left: 62, right: WIDTH - 14, top: above + 18 * shown, bottom: HEIGHT - 62 + 18 * shown };
  const origin = wrapped(picture.origin, (WIDTH - 28) / 5.4);
  const height = HEIGHT + 18 * shown + 13 * (origin.length - 1);
  const { x, y } = picture;
  const px = (v: number): number => box.left + ((v - x.min) / (x.max - x.min || 1)) * (box.right - box.left);
  const py = (v: number): number => box.bottom - ((v - y.min) / (y.max - y.min || 1)) * (box.bottom - box.top);
  const f = (v: number): string => v.toFixed(1);
  const parts: string[] = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" font-family="${escapeXml(style.font.replaceAll('"', "'"))}" font-size="12">`,
    `<title>${escapeXml(picture.title)}</title><desc>${escapeXml(picture.origin)}</desc>`,
    `<rect width="100%" height="100%" fill="${style.back}"/>`,
    titled ? `<text x="14" y="22" font-size="15" font-weight="600" fill="${style.text}">${escapeXml(picture.title)}</text>` : "",
  ];
  picture.lines.slice(0, shown * columns).forEach((line, i) => {
    const lx = 14 + (i % columns) * 184;
    const ly = above + 2 + 18 * Math.floor(i / columns);
    const name = line.name.length > 24 ? `${line.name.slice(0, 23)}…` : line.name;
    parts.push(`<path d="M${lx} ${ly - 4}h24" ${stroke(line)}/><text x="${lx + 30}" y="${ly}" fill="${style.text}">${escapeXml(name)}</text>`);
  });
  for (const v of ticks(y.min, y.max, 6)) {
    parts.push(`<path d="M${box.left} ${f(py(v))}H${box.right}" stroke="${style.line}"/><text x="${box.left - 6}" y="${f(py(v) + 4)}" text-anchor="end" fill="${style.muted}">${number(v, 5)}</text>`);
  }
  const words = x.words;
  for (const v of words ? words.map((_, i) => i) : ticks(x.min, x.max, WIDTH / 95)) {
    const label = words ? words[v]! : number(v, 6);
    parts.push(`<path d="M${f(px(v))} ${box.bottom}v4" stroke="${style.muted}"/><text x="${f(px(v))}" y="${box.bottom + 18}" text-anchor="middle" fill="${style.muted}">${escapeXml(label)}</text>`);
  }
  parts.push(
    `<path d="M${box.left} ${box.top}V${box.bottom}H${box.right}" fill="none" stroke="${style.muted}"/>`,
    `<text x="${(box.left + box.right) / 2}" y="${box.bottom + 36}" text-anchor="middle" fill="${style.muted}">${escapeXml(x.title)}</text>`,
    `<text transform="translate(16 ${(box.top + box.bottom) / 2}) rotate(-90)" text-anchor="middle" fill="${style.muted}">${escapeXml(y.title)}</text>`,
    `<clipPath id="box"><rect x="${box.left}" y="${box.top}" width="${box.right - box.left}" height="${box.bottom - box.top}"/></clipPath><g clip-path="url(#box)">`,
  );
  for (const { name, value } of picture.levels ?? []) {
    if (value > y.max) continue;
    parts.push(`<path d="M${box.left} ${f(py(value))}H${box.right}" stroke="${style.muted}" stroke-dasharray="2 3"/><text x="${box.right - 4}" y="${f(py(value) - 3)}" text-anchor="end" font-size="11" fill="${style.muted}">${escapeXml(name)}</text>`);
  }
  for (const line of picture.lines) {
    if (line.lo && line.hi) {
      for (let i = 0; i < line.xs.length; i++) {
        const lo = line.lo[i];
        const hi = line.hi[i];
        if (lo === null || lo === undefined || hi === null || hi === undefined) continue;
        parts.push(`<path d="M${f(px(line.xs[i]!))} ${f(py(lo))}V${f(py(hi))}" stroke="${line.colour}" stroke-opacity="${picture.lines.length > 4 ? 0.25 : 0.6}"/>`);
      }
    }
    parts.push(`<path d="${pathOf(line, px, py, x.min, x.max)}" fill="none" stroke-linejoin="round" ${stroke(line)}/>`);
    if (line.marks) {
      for (let i = 0; i < line.xs.length; i++) {
        const v = line.ys[i];
        if (v !== null && v !== undefined) parts.push(`<circle cx="${f(px(line.xs[i]!))}" cy="${f(py(v))}" r="3" fill="${line.colour}"/>`);
      }
    }
  }
  for (const line of picture.lines) {
    if (line.knee === undefined) continue;
    parts.push(`<circle cx="${f(px(line.xs[line.knee]!))}" cy="${f(py(line.ys[line.knee]!))}" r="8" fill="none" stroke="${line.colour}" stroke-width="2"/>`);
  }
  parts.push("</g>", originText(origin, height, style.muted), "</svg>");
  return parts.join("");
}

function stroke(line: SavedLine): string {
  const dashes = line.dash.length ? ` stroke-dasharray="${line.dash.join(" ")}"` : "";
  return `stroke="${line.colour}" stroke-width="1.6"${line.faint ? ' stroke-opacity=".4"' : ""}${dashes}`;
}

/** A path with at most four points for each step of a pixel: first, least, greatest, last. */
function pathOf(line: SavedLine, px: (v: number) => number, py: (v: number) => number, from: number, to: number): string {
  let path = "";
  let pen = false;
  let column = NaN;
  let held: [number, number][] = [];
  const flush = (): void => {
    if (!held.length) return;
    const low = held.reduce((a, b) => (b[1] < a[1] ? b : a));
    const high = held.reduce((a, b) => (b[1] > a[1] ? b : a));
    const kept = held.filter((p, i) => i === 0 || i === held.length - 1 || p === low || p === high);
    for (const [a, b] of kept) {
      path += `${pen ? "L" : "M"}${a.toFixed(1)} ${b.toFixed(1)}`;
      pen = true;
    }
    held = [];
  };
  for (let i = 0; i < line.xs.length; i++) {
    const v = line.ys[i];
    const next = line.xs[Math.min(i + 1, line.xs.length - 1)]!;
    const previous = line.xs[Math.max(i - 1, 0)]!;
    if (next < from || previous > to) continue;
    if (v === null || v === undefined || Number.isNaN(v)) {
      flush();
      pen = false;
      continue;
    }
    const a = px(line.xs[i]!);
    if (Math.round(a) !== column) flush();
    column = Math.round(a);
    held.push([a, py(v)]);
  }
  flush();
  return path;
}

function cell(x: string | number | null | undefined): string {
  if (x === null || x === undefined || (typeof x === "number" && !Number.isFinite(x))) return "";
  const text = String(x);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A table as CSV, after a line that says where it comes from. */
export function csv(origin: string, head: readonly string[], rows: Iterable<readonly (string | number | null | undefined)[]>): string {
  const made = [`# ${origin.replaceAll("\n", " ")}`, head.map(cell).join(",")];
  for (const row of rows) made.push(row.map(cell).join(","));
  return `${made.join("\n")}\n`;
}

function* lineRows(picture: LinePicture): Iterable<(string | number | null | undefined)[]> {
  for (const line of picture.lines) {
    for (let i = 0; i < line.xs.length; i++) {
      const at = line.xs[i]!;
      if (at < picture.x.min || at > picture.x.max) continue;
      yield [line.name, picture.x.words ? picture.x.words[at]! : at, line.ys[i], ...(line.lo ? [line.lo[i], line.hi?.[i]] : [])];
    }
  }
}

function svgOf(picture: Picture): string {
  return picture.kind === "lines" ? linesSvg(picture) : picture.svg();
}

function csvOf(picture: Picture): string {
  if (picture.kind === "drawn") return csv(picture.origin, picture.head, picture.rows);
  const intervals = picture.lines.some((line) => line.lo) ? ["95 % from", "to"] : [];
  return csv(picture.origin, ["line", picture.x.title, picture.y.title, ...intervals], lineRows(picture));
}

/** Hand a file to the browser. */
export function download(name: string, type: string, content: BlobPart): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

async function png(svg: string): Promise<Blob> {
  const image = new Image();
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    image.src = url;
    await image.decode();
    const canvas = h("canvas", { width: image.naturalWidth * 2, height: image.naturalHeight * 2 });
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done, failed) => canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("no picture"))), "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** A small menu that saves a picture. */
export function pictureMenu(picture: () => Picture): HTMLElement {
  const save = async (kind: "svg" | "png" | "csv"): Promise<void> => {
    const made = picture();
    const name = `${fileName(...made.name)}.${kind}`;
    if (kind === "csv") download(name, "text/csv", csvOf(made));
    else if (kind === "svg") download(name, "image/svg+xml", svgOf(made));
    else download(name, "image/png", await png(svgOf(made)));
  };
  const id = fresh("menu");
  return h(
    "span",
    { class: "save", role: "group", "aria-label": "Save this picture", id },
    ...(["svg", "png", "csv"] as const).map((kind) => h("button", { type: "button", class: "small", click: () => void save(kind) }, kind.toUpperCase())),
  );
}
