// The player: a queue packet by packet, played, paused, scrubbed and stepped; and kept as a GIF or a video.

import { get, isFile } from "./api";
import { h, put, tell } from "./dom";
import { fileName, number, quantity } from "./format";
import { Gif } from "./gif";
import { inPackets } from "./levels";
import type { QueueLevel } from "./panels";
import { choice, notInFile, problem, type Place, type Provenance } from "./parts";
import { DROPPED, Replay, type Events } from "./replay";
import { download } from "./save";
import { Stage, type Line, type Shown } from "./stage";
import { keep, keepSoon } from "./state";
import { onTheme } from "./theme";

interface Passage {
  link: string;
  links: string[];
  seed: number;
  from: number;
  to: number;
  duration: number;
  rate: number;
  flows: string[];
  causes: string[];
  levels: QueueLevel[];
  events: Record<keyof Events, number>;
  averages: { name: string; t: number; v: number }[];
  windows: { flow: number; t: number; v: number }[];
  drops: { t: number; packet: number; flow: string; cause: string; words: string }[];
}

const SPEEDS = [1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002];
/** A GIF has so many frames at most, and so many of them a second. */
const FRAMES = 160;
const GIF_RATE = 12.5;
const GIF_WIDTH = 720;

export async function player({ root, query, signal }: Place, head: Provenance & { id: string; setting?: number }): Promise<void> {
  if (isFile) {
    put(root, notInFile("The queue packet by packet"));
    return;
  }
  if (!head.again) {
    const why = head.live
      ? "Its hosts were real, and no log of the queue was kept: the simulator can't make that run again. Run the experiment's file with inprofile run to see its packets here, or capture a live run with tcpdump."
      : "This result is older than the text of its experiment, which the player runs again: run the experiment again.";
    put(root, problem(why));
    return;
  }
  const seed = Number(query["seed"] ?? head.seeds[0]);
  const asked: Record<string, string | number> = { id: head.id, seed, ...(head.setting === undefined ? {} : { setting: head.setting }) };
  for (const [key, name] of [["link", "link"], ["t0", "from"], ["t1", "to"]] as const) if (query[key]) asked[name] = query[key];
  const { head: found, arrays } = await get<Passage>("passage", asked);
  if (signal.aborted) return;
  const events = Object.fromEntries(Object.entries(found.events).map(([name, i]) => [name, arrays[i]!])) as unknown as Events;
  const replay = new Replay(events);
  const line = <T extends { t: number; v: number }>(of: T): Omit<T, "t" | "v"> & { t: Float64Array; v: Float64Array } => ({ ...of, t: arrays[of.t]!, v: arrays[of.v]! });
  const shown: Shown = {
    ...found,
    levels: inPackets(found.levels),
    averages: found.averages.map(line) as Line[],
    windows: found.windows.map((w) => ({ ...line(w), name: found.flows[w.flow] ?? "" })),
  };
  const stage = new Stage(replay, shown);
  const again = (changes: Record<string, string | number | null>): void => {
    keep(changes);
    dispatchEvent(new HashChangeEvent("hashchange"));
  };

  let time = Math.min(found.to, Math.max(found.from, Number(query["t"] ?? found.from)));
  let speed = SPEEDS.includes(Number(query["speed"])) ? Number(query["speed"]) : SPEEDS.find((s) => (found.to - found.from) / s >= 15) ?? 0.002;
  let playing = false;
  let last = 0;

  const canvas = h("canvas", { class: "stage", role: "img", "aria-label": `The queue at ${found.link}, packet by packet; what it shows is said below.` });
  const ctx = canvas.getContext("2d")!;
  const scrub = h("input", { type: "range", min: 0, max: 10000, step: 1, value: 0, class: "scrub", "aria-label": "Time" });
  const said = h("p", { class: "status" });
  const reason = h("p", { class: "dropped-why" });
  const size = { width: 0, height: 0 };
  const fit = (): void => {
    size.width = Math.max(300, canvas.parentElement?.clientWidth || innerWidth - 40);
    size.height = stage.height(size.width);
    const pixel = Math.min(2, devicePixelRatio || 1);
    canvas.width = Math.round(size.width * pixel);
    canvas.height = Math.round(size.height * pixel);
    canvas.style.height = `${size.height}px`;
    ctx.setTransform(pixel, 0, 0, pixel, 0, 0);
    draw();
  };
  const draw = (): void => {
    stage.draw(ctx, size, time, speed);
    scrub.value = String(Math.round((10000 * (time - found.from)) / (found.to - found.from)));
    scrub.setAttribute("aria-valuetext", `${time.toFixed(4)} s`);
    const text = stage.said(time);
    if (said.textContent !== text) said.textContent = text;
    const drop = lastDrop(found.drops, time);
    const words = drop ? `${drop.t.toFixed(6)} s: packet ${drop.packet} of ${drop.flow} dropped (${drop.cause.replaceAll("_", " ")}). ${drop.words}` : "Nothing has been dropped yet.";
    if (reason.textContent !== words) reason.textContent = words;
    canvas.dataset["time"] = time.toFixed(6);
  };
  const frame = (now: number): void => {
    if (!playing || signal.aborted) return;
    time = Math.min(found.to, time + Math.min(0.1, (now - last) / 1000) * speed);
    last = now;
    draw();
    if (time >= found.to) play(false);
    else requestAnimationFrame(frame);
  };
  const play = (on: boolean): void => {
    if (on && time >= found.to) time = found.from;
    playing = on;
    button.textContent = on ? "Pause" : "Play";
    button.setAttribute("aria-pressed", String(on));
    if (on) {
      last = performance.now();
      requestAnimationFrame(frame);
    } else {
      keepSoon({ t: time.toFixed(6) });
      tell(`${stage.said(time)}. ${reason.textContent ?? ""}`);
    }
  };
  const go = (to: number | null): void => {
    if (to === null) return;
    if (playing) play(false);
    time = Math.min(found.to, Math.max(found.from, to));
    keepSoon({ t: time.toFixed(6) });
    draw();
  };
  const button = h("button", { type: "button", class: "small play", "aria-pressed": "false", click: () => play(!playing) }, "Play");
  scrub.addEventListener("input", () => go(found.from + ((found.to - found.from) * Number(scrub.value)) / 10000));
  // The strip below the queue is a time line, too.
  const point = (event: PointerEvent): void => {
    const box = canvas.getBoundingClientRect();
    const { left, right, top, bottom } = stage.strip;
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    if (y >= top && y <= bottom) go(found.from + ((found.to - found.from) * (x - left)) / (right - left));
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    point(event);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons) point(event);
  });
  const speeds = choice("Speed", SPEEDS.map((s) => [String(s), s === 1 ? "as it was" : `1/${number(1 / s)}`]), String(speed), (value) => {
    speed = Number(value);
    keep({ speed: value });
  });
  const step = (name: string, to: () => number | null): HTMLElement => h("button", { type: "button", class: "small", click: () => go(to()) }, name);
  const bounds = (key: string, label: string, now: number): HTMLElement => {
    const box = h("input", { type: "number", class: "exact", step: "any", min: 0, max: found.duration, value: now.toFixed(3), "aria-label": `${label}, in s` });
    box.addEventListener("change", () => {
      if (box.value !== "" && Number.isFinite(Number(box.value))) again({ [key]: box.value, t: null });
    });
    return h("label", { class: "field" }, h("span", {}, label), box, h("span", { class: "muted" }, "s"));
  };
  const names = [head.title, "queue", found.link, `seed ${seed}`, `${number(found.from, 5)} s`, head.digest.slice(0, 8)];
  const outcome = h("span", { class: "muted", role: "status" });
  const saves = h(
    "span",
    { class: "save", role: "group", "aria-label": "Keep the film" },
    h("button", { type: "button", class: "small", click: () => void gif(stage, found, speed, names, outcome) }, "GIF"),
    typeof MediaRecorder === "undefined" ? "" : h("button", { type: "button", class: "small", click: () => film() }, "Video"),
  );
  const film = (): void => {
    const recorder = new MediaRecorder(canvas.captureStream(60), { mimeType: "video/webm" });
    const parts: Blob[] = [];
    recorder.addEventListener("dataavailable", (event) => parts.push(event.data));
    recorder.addEventListener("stop", () => {
      download(`${fileName(...names)}.webm`, "video/webm", new Blob(parts));
      outcome.textContent = "The video is saved.";
    });
    time = found.from;
    recorder.start();
    outcome.textContent = "Recording to the end; Pause ends it sooner.";
    play(true);
    const watch = setInterval(() => {
      if (playing && !signal.aborted) return;
      clearInterval(watch);
      recorder.stop();
    }, 100);
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.key === " " && event.target === canvas) play(!playing);
    else if (event.key === "ArrowRight" && event.target === canvas) go(stage.following(time));
    else if (event.key === "ArrowLeft" && event.target === canvas) go(stage.preceding(time));
    else return;
    event.preventDefault();
  };
  canvas.tabIndex = 0;
  canvas.addEventListener("keydown", keys);
  put(
    root,
    h(
      "div",
      { class: "bar" },
      choice("Seed", head.seeds.slice(0, 100).map((s) => [String(s), String(s)]), String(seed), (value) => again({ seed: value, t: null, t0: null, t1: null })),
      found.links.length > 1 ? choice("At", found.links.map((name): [string, string] => [name, name]), found.link, (value) => again({ link: value, t: null })) : null,
      bounds("t0", "From", found.from),
      bounds("t1", "to", found.to),
    ),
    h("div", { class: "bar" }, button, speeds, step("Previous event", () => stage.preceding(time)), step("Next event", () => stage.following(time)), step("Next drop", () => stage.following(time, [DROPPED])), saves, outcome),
    h("div", { class: "film" }, canvas),
    scrub,
    said,
    reason,
    h("ul", { class: "legend" }, ...legend(found).map(([colour, text]) => h("li", {}, dot(colour), text))),
    h("p", { class: "origin" }, `${head.title} · seed ${seed} · ${found.link}, ${quantity(found.rate, "bit/s")} · experiment ${head.digest.slice(0, 12)} · inprofile ${head.version}`),
  );
  const observer = new ResizeObserver(fit);
  observer.observe(canvas.parentElement!);
  signal.addEventListener("abort", () => observer.disconnect());
  onTheme(draw, signal);
  fit();
}

function lastDrop(drops: Passage["drops"], time: number): Passage["drops"][number] | undefined {
  let found: Passage["drops"][number] | undefined;
  for (const drop of drops) {
    if (drop.t > time) break;
    found = drop;
  }
  return found;
}

function legend(found: Passage): [string, string][] {
  const words: [string, string][] = [["#2f9e77", "IN packet"], ["#e08e0b", "OUT packet"]];
  return [...words, ["#d1495b", `dropped${found.causes.length ? `: ${found.causes.join(", ").replaceAll("_", " ")}` : ""}`]];
}

function dot(colour: string): SVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 10 10");
  svg.setAttribute("class", "dot");
  svg.setAttribute("aria-hidden", "true");
  const box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [name, value] of [["width", "10"], ["height", "10"], ["fill", colour]] as const) box.setAttribute(name, value);
  svg.append(box);
  return svg;
}

/** All of the stretch, as fast as it can be drawn. */
async function gif(stage: Stage, found: Passage, speed: number, names: (string | number)[], outcome: HTMLElement): Promise<void> {
  const frames = Math.min(FRAMES, Math.max(2, Math.ceil(((found.to - found.from) / speed) * GIF_RATE)));
  const canvas = h("canvas", { width: GIF_WIDTH, height: Math.round(stage.height(GIF_WIDTH)) });
  const ctx = canvas.getContext("2d", { willReadFrequently: true })!;
  const made = new Gif(canvas.width, canvas.height, Math.round(100 / GIF_RATE));
  // What moves for the viewer's eye moves as long as the film does.
  const shown = (found.to - found.from) / (frames / GIF_RATE);
  for (let i = 0; i < frames; i++) {
    stage.draw(ctx, canvas, found.from + ((found.to - found.from) * i) / (frames - 1), shown);
    made.add(ctx.getImageData(0, 0, canvas.width, canvas.height).data);
    if (i % 8 === 0) {
      outcome.textContent = `GIF: ${Math.round((100 * i) / frames)} %`;
      await new Promise((done) => setTimeout(done));
    }
  }
  const bytes = made.bytes();
  download(`${fileName(...names)}.gif`, "image/gif", bytes);
  outcome.textContent = `The GIF is saved: ${frames} frames, ${quantity(bytes.length, "B", 3)}.`;
}
