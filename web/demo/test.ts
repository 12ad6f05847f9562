/** The test page: what this browser has, whether it computes rightly, how fast it is, a report. */
import { Wick } from "libwick";
import type { KernelCheck } from "libwick";
import { describeDevice, deviceFacts } from "./device.js";
import { byId, copyText, fillFacts, make } from "./dom.js";
import { describeFeatures } from "./features.js";
import type { FactGroup } from "./features.js";
import { makeGpuReport, readLimits } from "./gpu_report.js";
import { formatCount, formatRate } from "./format.js";
import { drawChecks, drawSpeeds, fillChecks, isWrong, resultOf } from "./picture.js";
import { describeProblem } from "./problems.js";
import { listen } from "./runs.js";
import { measureSpeed } from "./speed.js";
import type { Speed } from "./speed.js";

/** Random operations for each kernel: enough to see a driver that is wrong, in a minute or two. */
const CASES = 6;

const report = { groups: [] as FactGroup[], checks: [] as KernelCheck[], speeds: [] as Speed[] };

const textOf = (value: string | boolean): string =>
  (typeof value === "string" ? value : value ? "yes" : "no");

// --- What it has ---

function makeGroup({ title, facts, details }: FactGroup): HTMLElement {
  const list = make("dl", { class: "facts" });
  fillFacts(list, facts.map(([name, value]) => [name, textOf(value)]));
  const group = make("div", { class: "group" }, make("h3", {}, title), list);
  if (details) {
    const more = make("dl", { class: "facts" });
    fillFacts(more, details.facts);
    group.append(make("details", {}, make("summary", {}, details.title), more));
  }
  return group;
}

async function openEngine(): Promise<Wick | undefined> {
  try {
    const wick = await Wick.open({ tensors: true });
    const capabilities = wick.capabilities();
    const { name, reason } = describeDevice(capabilities);
    report.groups.unshift({ title: "Wick", facts: [...deviceFacts(capabilities),
      ...capabilities.backends.filter(({ name, isAvailable }) => name === "webgpu" && !isAvailable)
        .map((backend): [string, string] => ["Why not WebGPU", backend.reason])] });
    byId("summary").textContent = reason === "" ? `Models run here on ${name}.` : reason;
    return wick;
  } catch (error) {
    byId("summary").textContent = describeProblem(error).text;
    return undefined;
  }
}

// --- Does it compute rightly? ---

function showChecks(): void {
  const { checks } = report;
  byId("kernels-picture").hidden = byId("kernels-table").hidden = checks.length === 0;
  drawChecks(byId("kernels-picture"), checks);
  fillChecks(byId("kernels-table"), checks);
}

async function checkKernels(wick: Wick, signal: AbortSignal): Promise<string> {
  report.checks = [];
  let isDue = false;
  await wick.verify({ cases: CASES, signal, onCheck: (check) => {
    report.checks.push(check);
    byId("kernels-state").textContent = `${report.checks.length} kernels, ${check.kernel}`;
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => {
      isDue = false;
      showChecks();
    });
  } });
  return summarize();
}

function summarize(): string {
  const run = report.checks.filter(({ status }) => status !== "NOT_FOUND");
  const wrong = run.filter(isWrong);
  const cases = run.reduce((sum, check) => sum + check.cases, 0);
  if (wrong.length === 0)
    return `${run.length} kernels are right in ${formatCount(cases)} cases.`;
  const names = wrong.map(({ kernel }) => kernel).join(", ");
  return `${wrong.length} of ${run.length} kernels are wrong: ${names}`;
}

// --- How fast is it? ---

async function measure(wick: Wick): Promise<string> {
  report.speeds = [];
  const bars = byId("speed-bars");
  bars.hidden = false;
  bars.replaceChildren();
  await measureSpeed(wick, (speed) => {
    report.speeds.push(speed);
    drawSpeeds(bars, report.speeds);
    byId("speed-state").textContent = speed.name;
  });
  return "";
}

// --- Report ---

function reportText(): string {
  const facts = report.groups.flatMap(({ title, facts }) =>
    [`\n${title}`, ...facts.map(([name, value]) => `  ${name}: ${textOf(value)}`)]);
  const checks = report.checks.map((check) =>
    `  ${check.kernel}: ${resultOf(check)}, largest error ${check.maxError.toExponential(1)}, `
    + `${(100 * check.worst).toFixed(1)} % of its bound`);
  const speeds = report.speeds.map(({ group, name, value, unit }) =>
    `  ${group}, ${name}: ${formatRate(value)} ${unit}`);
  return [`Wick, browser test`, ...facts,
    ...(checks.length > 0 ? ["\nKernels", `  ${summarize()}`, ...checks] : []),
    ...(speeds.length > 0 ? ["\nSpeed", ...speeds] : [])].join("\n");
}

/** The report of tools/gpu_report, as a file. */
async function download(wick: Wick): Promise<void> {
  const made = makeGpuReport(wick.capabilities(), await readLimits(), CASES, report.checks,
                             report.speeds);
  const text = JSON.stringify(made, undefined, 1);
  const href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  make("a", { href, download: "gpu_report.json" }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10000);
}

function listenToReport(): void {
  const [text, json] = [byId<HTMLButtonElement>("copy-text"), byId<HTMLButtonElement>("copy-json")];
  text.disabled = json.disabled = false;
  text.addEventListener("click", () => void copyText(text, reportText()));
  json.addEventListener("click", () => void copyText(json, JSON.stringify(report, undefined, 2)));
}

report.groups = await describeFeatures();
const wick = await openEngine();
byId("facts").replaceChildren(...report.groups.map(makeGroup));
listenToReport();
if (wick) {
  const save = byId<HTMLButtonElement>("save-json");
  save.disabled = false;
  save.addEventListener("click", () => void download(wick));
  listen("kernels", (signal) => checkKernels(wick, signal));
  listen("speed", () => measure(wick), { canStop: false });
}
