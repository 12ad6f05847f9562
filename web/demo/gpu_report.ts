/** The page's results as the report that tools/gpu_report writes (bench/README.md), as far as a
 * page can measure: the same sections, so that both can be compared. */
import type { Capabilities, KernelCheck } from "libwick";
import { resultOf } from "./picture.js";
import type { Speed } from "./speed.js";

type Section = Record<string, unknown>;

export interface GpuReport {
  format: 1;
  version: string;
  date: string;
  system: string;
  is_complete: boolean;
  adapters: Section[];
  verify: Section[];
  limits: Section[];
  kernels: Section[];
  models: Section[];
  troubles: Section[];
}

/** Names of adapters' features as `wick devices --json` has them. */
const FEATURES = ["f16", "subgroups", "dot4", "timestamps"] as const;

function describeAdapter({ device, backends }: Capabilities, limits: Section): Section {
  const { adapter } = device;
  const webgpu = backends.find(({ name }) => name === "webgpu");
  return {
    name: adapter?.name ?? "", vendor: adapter?.vendor ?? "",
    architecture: adapter?.architecture ?? "", api: "WebGPU", implementation: "browser",
    features: FEATURES.filter((name) => adapter?.[name]), limits,
    unusable: adapter ? "" : webgpu?.reason || device.fallbackReason || "the CPU computes",
  };
}

const verdictOf = (check: KernelCheck): string =>
  (check.status === "NOT_FOUND" ? "not met" : resultOf(check));

/** The limits of the adapter that a page gets, by WebGPU's names; empty: there is none. */
export async function readLimits(): Promise<Section> {
  const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
  const limits: Section = {};
  for (const name in adapter?.limits)
    limits[name] = Number(adapter.limits[name as keyof GPUSupportedLimits]);
  return limits;
}

/** `cases`: of each kernel. What was not run yet is missing in its section. */
export function makeGpuReport(capabilities: Capabilities, limits: Section, cases: number,
                              checks: KernelCheck[], speeds: Speed[]): GpuReport {
  const measured = (section: string) =>
    speeds.filter(({ field }) => field?.section === section);
  const rowsOf = (section: string, name: string) => measured(section)
    .filter(({ field }) => field?.name === name).map(({ field }) => field?.row ?? {});
  const lists = (section: string, names: string[]) =>
    names.map((name): [string, Section[]] => [name, rowsOf(section, name)]);
  const values = measured("limits").map(({ field }): [string, unknown] =>
    [field?.name ?? "", field?.row["value"]]);
  const verdicts = checks.map((check): [string, string] => [check.kernel, verdictOf(check)]);
  const kinds = ["q4_0", "q8_0", "q4_k", "q6_k", "f16", "attention", "other"];
  return {
    format: 1, version: `wick ${capabilities.version}`,
    date: new Date().toISOString().slice(0, 10), system: navigator.userAgent,
    is_complete: checks.length > 0 && speeds.length > 0,
    adapters: [describeAdapter(capabilities, limits)],
    verify: [{ adapter: 0, cases, kernels: Object.fromEntries(verdicts) }],
    limits: [{ adapter: 0, ...Object.fromEntries(values) }],
    kernels: [{ adapter: 0, ...Object.fromEntries(lists("kernels", kinds)) }],
    models: [{ adapter: 0, ...Object.fromEntries(lists("models", ["prefill", "decode"])) }],
    troubles: [],
  };
}
