// A queue at any moment of a stretch of time, from what arrived, left and was dropped; forwards quickly, backwards from the start.

/** Codes of the events. */
export const ARRIVES = 0;
export const LEAVES = 1;
export const DROPPED = 2;

export interface Events {
  t: Float64Array;
  what: Float64Array;
  packet: Float64Array;
  flow: Float64Array;
  colour: Float64Array;
  size: Float64Array;
  cause: Float64Array;
}

/** The queue at each event: how many waited, of each colour. */
export interface Lengths {
  all: Uint16Array;
  green: Uint16Array;
}

export class Replay {
  /** Events that wait, as their numbers, from the head. */
  waiting: number[] = [];
  /** The event of the last departure; −1 before the first. */
  left = -1;
  /** The arrivals of the packets that were dropped last, newest first, at most so many as are shown. */
  dropped: number[] = [];
  private next = 0;

  constructor(readonly events: Events) {}

  /** So many events. */
  get length(): number {
    return this.events.t.length;
  }

  /** The state right after everything up to this time. */
  seek(time: number): void {
    const { t } = this.events;
    if (this.next > 0 && t[this.next - 1]! > time) this.reset();
    while (this.next < t.length && t[this.next]! <= time) this.apply(this.next++);
  }

  /** The number of the next event. */
  get at(): number {
    return this.next;
  }

  private reset(): void {
    this.waiting = [];
    this.dropped = [];
    this.left = -1;
    this.next = 0;
  }

  private apply(i: number): void {
    const { what, packet } = this.events;
    if (what[i] === ARRIVES) {
      this.waiting.push(i);
      return;
    }
    const id = packet[i]!;
    const k = what[i] === LEAVES && packet[this.waiting[0] ?? -1] === id ? 0 : this.waiting.findIndex((j) => packet[j] === id);
    if (k >= 0) this.waiting.splice(k, 1);
    if (what[i] === LEAVES) this.left = i;
    else this.dropped = [i, ...this.dropped].slice(0, 12);
  }

  /** Over all events: how long the queue was after each. */
  lengths(): Lengths {
    const found = { all: new Uint16Array(this.length), green: new Uint16Array(this.length) };
    const { what, packet, colour } = this.events;
    const there = new Set<number>();
    let green = 0;
    for (let i = 0; i < this.length; i++) {
      const id = packet[i]!;
      const one = colour[i] === 0 ? 1 : 0;
      if (what[i] === ARRIVES) {
        there.add(id);
        green += one;
      } else if (there.delete(id)) green -= one;
      found.all[i] = there.size;
      found.green[i] = green;
    }
    return found;
  }
}

/** The last sample at or before a time; NaN before the first. */
export function sampleAt(t: Float64Array, v: Float64Array, time: number): number {
  let low = 0;
  let high = t.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (t[middle]! <= time) low = middle + 1;
    else high = middle;
  }
  return low ? v[low - 1]! : NaN;
}
