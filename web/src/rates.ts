// A panel of rates: means over a bin that fits the picture, which bin that is, and the samples a click away.

import { binned, fitting, sampled, steps, type Bin, type Sampled } from "./bins";
import { h } from "./dom";
import { number, quantity } from "./format";
import type { Panel } from "./panels";
import { choice } from "./parts";

/** A run has at least so many of the bins that may be chosen. */
const LEAST_CHOSEN = 10;

export class Rates {
  /** Beside the heading: what the values are means over, and the other way to see them. */
  readonly head = h("span", { class: "means muted" });
  /** Below the picture. */
  readonly note = h("p", { class: "counted" });
  /** For the origin of a picture. */
  said = "";
  private drawn: Panel;
  private bin: number | null = null;
  private readonly words = h("span");
  private readonly button: HTMLElement;
  private raw = false;

  private constructor(
    public source: Panel,
    private like: Sampled,
    choose: (bin: Bin) => void,
  ) {
    this.drawn = source;
    this.button = h("button", { type: "button", class: "small", click: () => choose(this.raw ? "auto" : "raw") });
    this.head.append(this.words, " ", this.button);
  }

  /** None where nothing was ever sent, or the panel is not of rates. */
  static of(source: Panel, choose: (bin: Bin) => void): Rates | null {
    const like = sampled(source);
    return like && new Rates(source, like, choose);
  }

  /** Other samples of the same lines. */
  renew(source: Panel): void {
    this.source = source;
    this.like = sampled(source) ?? this.like;
    this.drawn = source;
    this.bin = null;
  }

  /** What to draw for so many seconds in a picture so many pixels wide. */
  fit(bin: Bin, stretch: number, width: number): Panel {
    const { every } = this.like;
    const seconds = bin === "raw" ? every : bin === "auto" ? fitting(this.like, stretch, width) : bin;
    const wanted = seconds < 1.5 * every ? null : seconds;
    if (wanted !== this.bin) {
      this.bin = wanted;
      this.drawn = wanted === null ? this.source : binned(this.source, wanted);
    }
    this.raw = bin === "raw";
    this.say();
    return this.drawn;
  }

  private say(): void {
    const { every, packet, rate } = this.like;
    const over = this.bin ?? every;
    this.said = `means over ${quantity(over, "s")}`;
    const packets = number(Math.max(1, Math.round((rate * over) / packet)), 2);
    this.words.textContent = `mean over ${quantity(over, "s")}: ${this.bin === null ? "each sample" : `about ${packets} packets a line`}`;
    this.button.textContent = this.raw ? "Automatic" : `Each sample (${quantity(every, "s")})`;
    this.button.hidden = !this.raw && this.bin === null;
    const one = Math.round(packet);
    this.note.textContent = `On the wire, with headers. A packet counts whole, at the moment when it has arrived: one of ${one} B is ${quantity((8 * one) / over, "bit/s", 2)} of a mean, and a mean may exceed the link's rate by that.`;
  }
}

/** The bin that an address names. */
export function binOf(text: string | undefined): Bin {
  const seconds = Number(text);
  return text === "raw" ? "raw" : seconds > 0 && Number.isFinite(seconds) ? seconds : "auto";
}

/** The choice among bins; null where there are no rates. */
export function rateChoice(all: readonly Panel[], now: string | undefined, chosen: (bin: Bin) => void): { root: HTMLElement; set: (bin: Bin) => void } | null {
  const like = all.map(sampled).find((found) => found !== null);
  if (!like) return null;
  const bin = binOf(now);
  const longest = Math.max(...all.flatMap(({ lines }) => lines.map(({ t }) => t[t.length - 1] ?? 0)));
  const seconds = new Set(steps(like.every, longest / LEAST_CHOSEN).slice(1));
  if (typeof bin === "number") seconds.add(bin);
  const means = [...seconds].sort((a, b) => a - b).map((x): [string, string] => [String(x), `mean over ${quantity(x, "s")}`]);
  const root = choice("Rates", [["auto", "mean, automatic"], ["raw", `each sample (${quantity(like.every, "s")})`], ...means], String(bin), (text) => chosen(binOf(text)));
  const select = root.querySelector("select")!;
  return { root, set: (to) => (select.value = String(to)) };
}
