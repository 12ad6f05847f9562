/** Drawings of the test page: errors of kernels against their bounds, and bars. */
import type { KernelCheck } from "libwick";
import { make, makeSvg } from "./dom.js";
import { formatRate } from "./format.js";
import type { Speed } from "./speed.js";

/** Powers of ten that the drawing spans; 1 is the bound. What is smaller is drawn as exact. */
const LOWEST = -5, HIGHEST = 1;
const HEIGHT = 260, LEFT = 72, RIGHT = 12, TOP = 14, BOTTOM = 30;

/** Where a part of the bound stands, from the top. */
function heightOf(part: number): number {
  const power = Math.min(HIGHEST, Math.max(LOWEST, Math.log10(Math.max(part, 1e-30))));
  return TOP + (HIGHEST - power) / (HIGHEST - LOWEST) * (HEIGHT - TOP - BOTTOM);
}

function powerLabel(power: number): string {
  if (power === 0) return "the bound";
  if (power > 0) return `${10 ** power} times`;
  return power === LOWEST ? "exact" : `1 / ${(10 ** -power).toLocaleString("en")}`;
}

function makeAxis(width: number): SVGElement[] {
  const powers = Array.from({ length: HIGHEST - LOWEST + 1 }, (_, i) => LOWEST + i);
  return powers.flatMap((power) => {
    const y = heightOf(10 ** power);
    return [
      makeSvg("line", { class: power === 0 ? "bound" : "axis", x1: LEFT, x2: width - RIGHT,
        y1: y, y2: y }),
      makeSvg("text", { x: LEFT - 10, y: y + 4, "text-anchor": "end" }, powerLabel(power)),
    ];
  });
}

/** A point for each kernel: the largest part of its bound that an error was. */
export function drawChecks(element: HTMLElement, checks: KernelCheck[]): void {
  const width = Math.max(280, element.clientWidth - 40);
  const drawn = checks.filter(({ status }) => status !== "NOT_FOUND")
    .sort((a, b) => a.worst - b.worst);
  const step = (width - LEFT - RIGHT) / Math.max(drawn.length, 1);
  const points = drawn.map(({ kernel, status, worst }, i) =>
    makeSvg("circle", { class: status === "OK" ? "ok" : "fail", cx: LEFT + (i + .5) * step,
      cy: status === "OK" ? heightOf(worst) : heightOf(10 ** HIGHEST), r: step > 12 ? 4 : 3 },
    makeSvg("title", {}, `${kernel}: ${(100 * worst).toPrecision(3)} % of its bound`)));
  const failed = drawn.filter(({ status }) => status !== "OK").length;
  element.replaceChildren(makeSvg("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img",
    "aria-label": `Errors of ${drawn.length} kernels against their bounds; ${failed} fail` },
  ...makeAxis(width), ...points,
  makeSvg("text", { x: LEFT, y: HEIGHT - 6 },
    `${drawn.length} kernels, by the largest error of each`)));
}

const exponent = (value: number): string => (value === 0 ? "0" : value.toExponential(1));

/** The same as figures; those that fail are first. */
export function fillChecks(element: HTMLElement, checks: KernelCheck[]): void {
  const sorted = [...checks].sort((a, b) => Number(a.status === "OK") - Number(b.status === "OK")
    || (a.kernel < b.kernel ? -1 : 1));
  const cell = (text: string) => make("td", {}, text);
  const rows = sorted.map((check) => make("tr", { class: isWrong(check) ? "fail" : "" },
    cell(check.kernel), cell(String(check.cases)), cell(exponent(check.meanError)),
    cell(exponent(check.rmsError)), cell(exponent(check.maxError)),
    cell(`${(100 * check.worst).toFixed(1)} %`), cell(resultOf(check))));
  const head = ["Kernel", "Cases", "Mean error", "RMS", "Largest", "Of its bound", "Result"]
    .map((text) => make("th", { scope: "col" }, text));
  element.replaceChildren(make("table", {}, make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...rows)));
}

export const isWrong = ({ status }: KernelCheck): boolean => !["OK", "NOT_FOUND"].includes(status);

export function resultOf({ status, failure }: KernelCheck): string {
  if (status === "OK") return "right";
  return status === "NOT_FOUND" ? "does not apply here" : failure;
}

/** Bars by group; the longest of a unit is as long as the place allows. */
export function drawSpeeds(element: HTMLElement, speeds: Speed[]): void {
  const groups = [...new Set(speeds.map(({ group }) => group))];
  element.replaceChildren(...groups.flatMap((group) => [
    make("h3", {}, group),
    ...speeds.filter((speed) => speed.group === group).map((speed) => makeBar(speed, speeds)),
  ]));
}

function makeBar({ group, name, value, unit }: Speed, speeds: Speed[]): HTMLElement {
  const largest = Math.max(...speeds.filter((other) => other.group === group)
    .map((other) => other.value));
  const bar = (kind: string, width: number) => makeSvg("rect", { class: kind, height: 10, rx: 5,
    width: `${Math.max(1, 100 * width)}%` });
  return make("div", { class: "bar-row" }, make("span", {}, name),
    makeSvg("svg", { "aria-hidden": "true" }, bar("rail", 1), bar("fill", value / largest)),
    make("span", { class: "figure" }, `${formatRate(value)} ${unit}`));
}
