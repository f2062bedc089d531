// One panel's chart over time: its axes, its lines and what the mouse does, for uPlot.

import uPlot from "uplot";
import { number } from "./format";
import { drawLevels, nameLevels, reach } from "./levels";
import type { Drawn, Level, Panel } from "./panels";
import { colour, dash, look } from "./theme";

export const HEIGHT = 210;
/** As many lines have a dash each and a name in the legend that is always seen. */
export const FEW = 14;

export interface Chart {
  width: number;
  /** Charts with the same key share a cursor. */
  key: string;
  shows: (line: Drawn) => boolean;
  /** In the unit that is drawn. */
  levels: readonly Level[];
  zoomed: (from: number, to: number) => void;
  moved: (u: uPlot) => void;
}

/** Draws a panel's first samples into this place. */
export function chart(panel: Panel, first: uPlot.AlignedData, place: HTMLElement, of: Chart): uPlot {
  const style = look();
  const few = panel.lines.length <= FEW;
  const axis: uPlot.Axis = {
    stroke: style.muted,
    font: `12px ${style.font}`,
    labelFont: `12px ${style.font}`,
    grid: { stroke: style.line, width: 1 },
    ticks: { stroke: style.line, width: 1, size: 4 },
  };
  return new uPlot(
    {
      width: of.width,
      height: HEIGHT,
      legend: { show: false },
      padding: [8, 22, 0, 0],
      scales: { x: { time: false }, y: { range: (_, min, max) => rangeOf(min, reach(of.levels, max ?? 0) || max) } },
      axes: [
        { ...axis, values: (_, ticks) => ticks.map((x) => `${number(x, 6)} s`), size: 30 },
        { ...axis, size: 58, values: (_, ticks) => ticks.map((x) => number(x, 5)) },
      ],
      cursor: {
        sync: { key: of.key, setSeries: false, scales: ["x", null] },
        drag: { x: true, y: false, setScale: false },
        points: { size: few ? 6 : 0 },
      },
      series: [
        {},
        ...panel.lines.map((line) => ({
          label: line.name,
          stroke: line.before ? fade(colour(line.n)) : colour(line.n),
          width: line.before ? 1.2 : few ? 1.6 : 1,
          ...(few && line.n > 0 ? { dash: [...dash(line.n)] } : {}),
          points: { show: false },
          show: of.shows(line),
          spanGaps: false,
        })),
      ],
      hooks: {
        setSelect: [
          (u) => {
            if (u.select.width < 6) return;
            const from = u.posToVal(u.select.left, "x");
            const to = u.posToVal(u.select.left + u.select.width, "x");
            u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            of.zoomed(from, to);
          },
        ],
        setCursor: [of.moved],
        drawAxes: [(u) => drawLevels(u, of.levels, style)],
        draw: [(u) => nameLevels(u, of.levels, style)],
      },
    },
    first,
    place,
  );
}

/** From 0, with a little air above. */
function rangeOf(min: number | null, max: number | null): uPlot.Range.MinMax {
  const top = max ?? 1;
  const low = Math.min(0, min ?? 0);
  return [low, top > low ? top + (top - low) * 0.05 : low + 1];
}

function fade(of: string): string {
  return `${of}66`;
}

/** A line of the legend's. */
export function swatch(line: Drawn, dashed: boolean): SVGElement {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 8");
  svg.setAttribute("class", "swatch");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", "M0 4H24");
  path.setAttribute("stroke", colour(line.n));
  path.setAttribute("stroke-width", "2.5");
  if (line.before) path.setAttribute("stroke-opacity", "0.4");
  if (dashed && dash(line.n).length) path.setAttribute("stroke-dasharray", dash(line.n).join(" "));
  svg.append(path);
  return svg;
}
