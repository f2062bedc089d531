// What if: sliders on thresholds, rates and contracts; the server runs the experiment again while one is dragged.

import { get, isFile, post, Refused, type Packed } from "./api";
import { fresh, h, put, tell } from "./dom";
import { number, quantity } from "./format";
import { over, panels, usual, type Figures } from "./panels";
import { choice, notInFile, problem, type Place, type Provenance } from "./parts";
import { keep, keepSoon } from "./state";
import { colour } from "./theme";
import { TimePlots } from "./timeplots";

interface Knob {
  key: string;
  label: string;
  place: string;
  value: number;
  unit: string;
  least: number;
  most: number;
  log: boolean;
  whole: boolean;
  index: number | null;
  others: string[];
  first: boolean;
}

interface Start {
  title: string;
  knobs: Knob[];
}

type Answer = Packed<Figures & { seconds: number; digest: string }>;

const STEPS = 400;
/** As many sliders of links, and of contracts, are shown without being asked for. */
const FIRST = 8;
const CONTRACTS = 4;

export async function whatIf(place: Place, head: Provenance & { id: string; setting?: number }): Promise<void> {
  const { root, query, signal } = place;
  if (isFile) {
    put(root, notInFile("What if"));
    return;
  }
  if (!head.again) {
    const why = head.live ? "Its hosts were real: the simulator is not what was run." : "This result is older than what what-if needs: run the experiment again.";
    put(root, problem(why));
    return;
  }
  const source = { id: head.id, ...(head.setting === undefined ? {} : { setting: head.setting }) };
  const { knobs } = (await get<Start>("knobs", source)).head;
  const named = new Map(knobs.map((knob) => [nameOf(knob), knob]));
  const moved = new Map<string, number>();
  for (const pair of (query["set"] ?? "").split("|")) {
    const at = pair.lastIndexOf("=");
    const value = Number(pair.slice(at + 1));
    if (at > 0 && named.has(pair.slice(0, at)) && Number.isFinite(value)) moved.set(pair.slice(0, at), value);
  }
  const seed = Number(query["seed"] ?? head.seeds[0]);
  let before: Answer | null = null;
  let now: Answer | null = null;

  const status = h("p", { class: "status muted", role: "status" }, "Running …");
  const wrong = h("p", { class: "problem", role: "alert", hidden: true });
  const bars = h("div", { class: "bars" });
  const said = (): string => [...moved].map(([name, value]) => `${name} = ${shown(named.get(name)!, value)}`).join(", ");
  const plots = new TimePlots(
    {
      origin: () => `${head.title} · seed ${seed} · experiment ${(now ?? before)?.head.digest.slice(0, 12) ?? ""} · inprofile ${head.version}${moved.size ? ` · what if ${said()}` : ""}`,
      bin: "auto",
      names: () => [head.title, "what if", ...[...moved].map(([name, value]) => `${name} ${value}`), `seed ${seed}`],
    },
    signal,
  );

  // One question at a time; the newest is asked when the last was answered.
  let asking = false;
  let again = false;
  const ask = async (): Promise<void> => {
    if (asking) {
      again = true;
      return;
    }
    asking = true;
    do {
      again = false;
      const began = performance.now();
      try {
        before ??= (await post<Answer["head"]>("whatif", { ...source, seed, set: {} })) as Answer;
        now = moved.size ? ((await post<Answer["head"]>("whatif", { ...source, seed, set: changes(named, moved) })) as Answer) : before;
        if (signal.aborted) return;
        wrong.hidden = true;
        draw(before, now);
        const took = performance.now() - began;
        status.textContent = `Simulated in ${number(1000 * now.head.seconds, 3)} ms, drawn after ${number(took, 3)} ms.`;
        root.dataset["drawn"] = String(Math.round(took));
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        if (error.status === 409) {
          // Another tab's run ended this one.
          await new Promise((done) => setTimeout(done, 100));
          again = true;
        } else {
          wrong.textContent = error.message;
          wrong.hidden = false;
          status.textContent = "What is drawn is the last that could run.";
        }
      }
    } while (again && !signal.aborted);
    asking = false;
  };
  const draw = (was: Answer, is: Answer): void => {
    const old = new Map(panels(was).map((panel) => [panel.id, panel]));
    const all = panels(is);
    const wanted = usual(all);
    const changed = was !== is;
    plots.set(
      all.filter((panel) => wanted.includes(panel.id)).map((panel) => (changed && panel.lines.length <= 6 ? over(old.get(panel.id), panel) : panel)),
    );
    drawBars(bars, was, is);
  };

  const sliders = h("div", { class: "sliders" });
  const add = (knob: Knob): void => put(sliders, slider(knob, moved.get(nameOf(knob)), (value) => {
    if (value === null) moved.delete(nameOf(knob));
    else moved.set(nameOf(knob), value);
    keepSoon({ set: [...moved].map(([name, x]) => `${name}=${x}`).join("|") });
    void ask();
  }));
  const first = knobs.filter((knob) => knob.first);
  const contracts = first.filter((knob) => knob.key.endsWith(".contract")).slice(0, CONTRACTS);
  const links = first.filter((knob) => !knob.key.endsWith(".contract")).slice(0, FIRST);
  const begun = new Set([...links, ...contracts].map(nameOf).concat(...moved.keys()));
  knobs.filter((knob) => begun.has(nameOf(knob))).forEach(add);
  const more = choice("More sliders", [["", "choose …"], ...knobs.map((k): [string, string] => [nameOf(k), `${k.place}: ${k.label}`])], "", (name) => {
    const knob = named.get(name);
    if (knob && !begun.has(name)) {
      begun.add(name);
      add(knob);
    }
  });
  const seeds = choice("Seed", head.seeds.slice(0, 100).map((s) => [String(s), String(s)]), String(seed), (value) => {
    keep({ seed: value });
    dispatchEvent(new HashChangeEvent("hashchange"));
  });
  const reset = h(
    "button",
    {
      type: "button",
      class: "small",
      click: () => {
        moved.clear();
        keep({ set: null });
        sliders.replaceChildren();
        knobs.filter((knob) => begun.has(nameOf(knob))).forEach(add);
        void ask();
        tell("All values are as they were.");
      },
    },
    "As it was",
  );
  put(root, h("div", { class: "whatif" }, h("div", { class: "side" }, bars, status, wrong, sliders, more, h("div", { class: "bar" }, seeds, reset)), h("div", {}, plots.root)));
  await ask();
}

function nameOf(knob: Knob): string {
  return knob.index === null ? knob.key : `${knob.key}[${knob.index}]`;
}

function shown(knob: Knob, value: number): string {
  return `${number(value, 5)}${knob.unit ? ` ${knob.unit}` : ""}`;
}

/** What is sent: values as `--set` takes them. */
function changes(named: Map<string, Knob>, moved: Map<string, number>): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const [name, value] of moved) {
    const knob = named.get(name)!;
    const text = knob.unit ? `${value} ${knob.unit}` : value;
    if (knob.index === null) made[knob.key] = text;
    else {
      const list = (made[knob.key] as string[] | undefined) ?? [...knob.others];
      list[knob.index] = String(text);
      made[knob.key] = list;
    }
  }
  return made;
}

function slider(knob: Knob, start: number | undefined, changed: (value: number | null) => void): HTMLElement {
  const id = fresh("knob");
  const toStep = (x: number): number =>
    knob.log ? (STEPS * Math.log(Math.max(x, knob.least) / knob.least)) / Math.log(knob.most / knob.least) : (STEPS * (x - knob.least)) / (knob.most - knob.least);
  const fromStep = (s: number): number => {
    const x = knob.log ? knob.least * (knob.most / knob.least) ** (s / STEPS) : knob.least + ((knob.most - knob.least) * s) / STEPS;
    return knob.whole ? Math.round(x) : Number(x.toPrecision(3));
  };
  const now = start ?? knob.value;
  const input = h("input", { type: "range", id, min: 0, max: STEPS, step: 1, value: toStep(now), "aria-valuetext": shown(knob, now) });
  const box = h("input", { type: "number", class: "exact", step: "any", value: now, "aria-label": `${knob.place}: ${knob.label}, exactly` });
  const back = h("button", { type: "button", class: "small", title: `As it was: ${shown(knob, knob.value)}`, hidden: now === knob.value }, "↺");
  const set = (value: number, from: "slider" | "box" | "back"): void => {
    if (from !== "slider") input.value = String(toStep(value));
    if (from !== "box") box.value = String(value);
    input.setAttribute("aria-valuetext", shown(knob, value));
    back.hidden = value === knob.value;
    changed(value === knob.value ? null : value);
  };
  input.addEventListener("input", () => set(fromStep(Number(input.value)), "slider"));
  box.addEventListener("change", () => {
    const value = Number(box.value);
    if (box.value !== "" && Number.isFinite(value)) set(value, "box");
  });
  back.addEventListener("click", () => set(knob.value, "back"));
  back.setAttribute("aria-label", `${knob.label} as it was`);
  return h("div", { class: "slider" }, h("label", { for: id }, h("span", { class: "muted" }, `${knob.place} `), knob.label), h("div", { class: "exactly" }, box, h("span", { class: "muted" }, knob.unit), back), input);
}

/** As many flows have a bar each; groups beyond. */
const MOST_BARS = 16;

interface Bar {
  name: string;
  contract: number | null;
  was: number | null;
  is: number;
}

/** What each flow got, beside its contract and what it got before. */
function drawBars(root: HTMLElement, was: Answer, is: Answer): void {
  const made = rowsOf(is);
  const old = new Map(rowsOf(was).map((row) => [row.name, row.is]));
  const rows = made.map((row) => ({ ...row, was: was === is ? null : (old.get(row.name) ?? null) }));
  const most = Math.max(1, ...rows.flatMap((row) => [row.is, row.contract ?? 0, row.was ?? 0]));
  const width = (x: number): string => `${((100 * x) / most).toFixed(2)}%`;
  const kept = rows.filter((row) => row.contract !== null && row.is >= row.contract).length;
  const sold = rows.filter((row) => row.contract !== null).length;
  root.replaceChildren(
    h("h2", { class: "part" }, "Throughput and contracts ", h("small", {}, sold ? `${kept} of ${sold} contracts kept in this run` : "no contracts")),
    ...rows.map((row) => {
      const good = row.contract === null || row.is >= row.contract;
      const bar = h("div", { class: `bar-of${good ? "" : " short-of"}` });
      const fill = h("i", { class: "fill" });
      fill.style.width = width(row.is);
      fill.style.background = good ? colour(0) : "";
      put(bar, fill);
      if (row.was !== null) {
        const mark = h("i", { class: "was" });
        mark.style.left = width(row.was);
        put(bar, mark);
      }
      if (row.contract !== null) {
        const mark = h("i", { class: "contract" });
        mark.style.left = width(row.contract);
        put(bar, mark);
      }
      const against = row.contract === null ? "" : ` of ${quantity(row.contract, "bit/s", 3)} ${good ? "✓" : "✗"}`;
      return h("div", { class: "bar-row" }, h("span", { class: "name" }, row.name), bar, h("span", { class: "n" }, `${quantity(row.is, "bit/s", 3)}${against}`));
    }),
    h("p", { class: "muted key" }, h("i", { class: "contract" }), " contract", was === is ? "" : h("span", {}, h("i", { class: "was" }), " before")),
  );
}

function rowsOf({ head }: Answer): Bar[] {
  const { flow, group } = head.flows;
  const got = (head.flows["throughput"] ?? []) as (number | null)[];
  const contract = (head.flows["contract"] ?? []) as (number | null)[];
  if (flow.length <= MOST_BARS) return flow.map((name, i) => ({ name, contract: contract[i] ?? null, was: null, is: got[i] ?? 0 }));
  const made = new Map<string, { is: number; contract: number | null; n: number }>();
  group.forEach((name, i) => {
    const row = made.get(name) ?? { is: 0, contract: null, n: 0 };
    made.set(name, row);
    row.is += got[i] ?? 0;
    row.n += 1;
    const c = contract[i];
    if (c !== null && c !== undefined) row.contract = (row.contract ?? 0) + c;
  });
  return [...made].map(([name, row]) => ({ name: `${name}, all ${row.n}`, contract: row.contract, was: null, is: row.is }));
}
