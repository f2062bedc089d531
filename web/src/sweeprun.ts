// One run of a sweep: a sweep keeps no samples, so the run is made again, with the same seed.

import { isFile, post } from "./api";
import { h, put } from "./dom";
import { heading, notInFile, tabs, type Effective, type Place, type Provenance } from "./parts";
import { player } from "./player";
import type { packets } from "./packets";
import type { Figures } from "./panels";
import { kept, showSeries } from "./run";
import type { Sweep } from "./sweepdata";
import { whatIf } from "./whatif";

const TABS: readonly [string, string][] = [
  ["series", "Over time"],
  ["packets", "Packets"],
  ["queue", "Play the queue"],
  ["whatif", "What if"],
];

export async function runOfSweep(place: Place, sweep: Sweep, showPackets: typeof packets): Promise<void> {
  const { root, query } = place;
  const setting = Number(query["setting"]);
  const seed = Number(query["seed"] ?? sweep.seeds[0]);
  const values = sweep.axes.map((axis) => `${axis.short} ${axis.texts[setting] ?? "?"}`).join(", ");
  const head: Provenance & { id: string; setting: number } = {
    id: sweep.id,
    setting,
    title: sweep.title,
    seeds: sweep.seeds,
    version: sweep.version,
    digest: sweep.digest,
    live: false,
    again: true,
    set: sweep.set,
    text: sweep.text,
    effective: {} as Effective,
  };
  const tab = TABS.some(([name]) => name === query["tab"]) ? query["tab"]! : "series";
  put(root, heading(sweep.title, `${sweep.id} / setting ${setting}`, h("p", {}, `${values}; seed ${seed}`)));
  if (isFile) {
    put(root, notInFile("A single run of a sweep"));
    return;
  }
  put(root, tabs("sweep", kept(query), TABS, tab));
  const origin = (of: number): string => `${sweep.title} · ${values} · seed ${of} · sweep ${sweep.digest.slice(0, 12)} · inprofile ${sweep.version}`;
  if (tab === "whatif") await whatIf(place, head);
  else if (tab === "queue") await player(place, head);
  else if (tab === "packets") await showPackets(place, head, origin);
  else {
    const found = await post<Figures>("whatif", { id: sweep.id, setting, seed, set: {} });
    showSeries(place, found, { before: [], origin: () => origin(seed), names: [sweep.title, values, `seed ${seed}`] });
  }
}
