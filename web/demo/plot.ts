/** Lines over numbers that grow while something runs, such as the loss over the steps. */
import { makeSvg } from "./dom.js";

const HEIGHT = 220, LEFT = 44, RIGHT = 44, TOP = 12, BOTTOM = 26;
/** Of a line; of more, some are left out. */
const MOST_POINTS = 400;
/** A line of fewer points has dots. */
const MANY_POINTS = 30;

export interface Line {
  /** What the values are, and the class of its colour. */
  name: string;
  kind: "loss" | "rate" | "held";
  points: [number, number][];
  /** The scale on the left ends there; undefined: at the largest value. */
  top?: number;
  format(value: number): string;
}

/** Few of many points, the last one among them. */
function thinned(points: [number, number][]): [number, number][] {
  const step = Math.ceil(points.length / MOST_POINTS);
  return points.filter((_, i) => (points.length - 1 - i) % step === 0);
}

function drawLine({ kind, points, top, format, name }: Line, end: number, width: number,
                  isRight: boolean): SVGElement[] {
  const most = top ?? Math.max(...points.map(([, y]) => y), 1e-9);
  const places = thinned(points).map(([x, y]) => [
    (LEFT + x / end * (width - LEFT - RIGHT)).toFixed(1),
    (TOP + (1 - Math.min(y, most) / most) * (HEIGHT - TOP - BOTTOM)).toFixed(1),
  ] as const);
  const dots = points.length < MANY_POINTS ? places : [];
  const x = isRight ? width - RIGHT + 8 : LEFT - 8, anchor = isRight ? "start" : "end";
  return [
    makeSvg("polyline", { class: `line ${kind}`, points: places.join(" ") },
            makeSvg("title", {}, name)),
    ...dots.map(([cx, cy]) => makeSvg("circle", { class: kind, cx, cy, r: 3 })),
    makeSvg("text", { class: kind, x, y: TOP + 8, "text-anchor": anchor }, format(most)),
    makeSvg("text", { class: kind, x, y: HEIGHT - BOTTOM, "text-anchor": anchor }, format(0)),
  ];
}

/** end: of the axis below, at which the lines arrive when all is done; label: what is counted there.
 * The scale of the first line is on the left, that of the last one on the right. */
export function drawLines(element: HTMLElement, lines: Line[], end: number, label: string): void {
  const drawn = lines.filter(({ points }) => points.length > 0);
  element.hidden = drawn.length === 0;
  const width = Math.max(280, element.clientWidth - 40);
  const said = drawn.map(({ name, points, format }) => `${name} ${format(points.at(-1)![1])}`);
  element.replaceChildren(makeSvg(
    "svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": said.join(", ") },
    makeSvg("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: HEIGHT - BOTTOM,
      y2: HEIGHT - BOTTOM }),
    makeSvg("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: TOP, y2: TOP }),
    ...drawn.flatMap((line, i) => drawLine(line, end, width, i > 0)),
    makeSvg("text", { x: LEFT, y: HEIGHT - 6 }, label)));
}
