// What the server says. In a file that was sent, the same answers lie in the document.

export interface Packed<T> {
  head: T;
  arrays: Float64Array[];
}

/** Why the server did not answer. */
export class Refused extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

interface Offline {
  answers: Record<string, string>;
  leftOut: string[];
}

const stored = document.getElementById("offline");
const offline: Offline | null = stored ? (JSON.parse(stored.textContent ?? "null") as Offline) : null;

/** Whether this is a file that was sent: nothing can run. */
export const isFile = offline !== null;
/** What had no room in it. */
export const leftOut: readonly string[] = offline?.leftOut ?? [];

/** Length, JSON, arrays: see pack.py. */
export function unpack<T>(data: ArrayBuffer): Packed<T> {
  const length = new DataView(data).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, length))) as T & { arrays: number[] };
  let at = 4 + length;
  const arrays = head.arrays.map((n) => {
    const made = new Float64Array(data, at, n);
    at += 8 * n;
    return made;
  });
  return { head, arrays };
}

async function inflated(text: string): Promise<ArrayBuffer> {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

type Query = Record<string, string | number | readonly string[]>;

function path(what: string, query: Query): string {
  const pairs = Object.entries(query).flatMap(([key, value]) => [value].flat().map((one) => `${key}=${encodeURIComponent(one as string | number)}`));
  return pairs.length ? `${what}?${pairs.join("&")}` : what;
}

/** An answer; raises Refused. */
export async function get<T>(what: string, query: Query = {}): Promise<Packed<T>> {
  const where = path(what, query);
  if (offline) {
    const found = offline.answers[where];
    if (found === undefined) throw new Refused("This is not in the file that was sent. Ask its sender for the folder, or for a larger file.", 404);
    return unpack<T>(await inflated(found));
  }
  return answered<T>(await reached(fetch(`api/${where}`)));
}

/** Whether an answer can be had, without asking for it. */
export function has(what: string, query: Query = {}): boolean {
  return offline === null || path(what, query) in offline.answers;
}

/** An answer to what is sent; raises Refused. */
export async function post<T>(what: string, body: unknown): Promise<Packed<T>> {
  if (offline) throw new Refused("Nothing can run in a file that was sent.", 404);
  const headers = { "Content-Type": "application/json" };
  return answered<T>(await reached(fetch(`api/${what}`, { method: "POST", headers, body: JSON.stringify(body) })));
}

async function reached(asked: Promise<Response>): Promise<Response> {
  try {
    return await asked;
  } catch {
    throw new Refused("The server does not answer: inprofile view has ended. Start it again and reload.", 0);
  }
}

async function answered<T>(response: Response): Promise<Packed<T>> {
  if (response.ok) return unpack<T>(await response.arrayBuffer());
  const text = await response.text();
  let message = text;
  try {
    message = (JSON.parse(text) as { error: string }).error;
  } catch {
    // The guard answers in plain text.
  }
  throw new Refused(message || `The server answered ${response.status}.`, response.status);
}
