/** What a browser has for Wick: WebGPU, WebAssembly, the page's rights, storage. */
import { estimateStorage } from "./storage.js";

/** Facts with a title; a value of true or false is shown as yes or no. */
export interface FactGroup {
  title: string;
  facts: [string, string | boolean][];
  /** More of them, shown when asked for. */
  details?: { title: string; facts: [string, string][] };
}

/** The smallest modules that use a feature, without the magic number and version. */
const WASM_FEATURES: [string, number[]][] = [
  // A function whose body is an instruction of the feature.
  ["SIMD", [1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 9, 1, 7, 0, 65, 0, 253, 15, 26, 11]],
  ["Relaxed SIMD", [1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 16, 1, 14, 0, 65, 0, 253, 15, 65, 0, 253, 15,
    253, 128, 2, 26, 11]],
  ["Bulk memory", [1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 5, 3, 1, 0, 1, 10, 13, 1, 11, 0, 65, 0, 65, 0, 65,
    0, 252, 11, 0, 11]],
  // A shared memory; one that is addressed by 64 bits.
  ["Threads", [5, 4, 1, 3, 1, 1]],
  ["Memory over 4 GB", [5, 3, 1, 4, 1]],
];

const LIMITS: (keyof GPUSupportedLimits)[] = [
  "maxBufferSize", "maxStorageBufferBindingSize", "maxStorageBuffersPerShaderStage",
  "maxComputeWorkgroupStorageSize", "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupsPerDimension",
];

function hasWasm(body: number[]): boolean {
  return WebAssembly.validate(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, ...body));
}

/** "maxBufferSize" as "Buffer size". */
function limitName(name: string): string {
  const words = name.replace(/^max/, "").replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

const limitText = (value: number): string => {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]] as const)
    if (value >= size && value % size === 0) return `${value / size} ${unit}`;
  return value.toLocaleString("en");
};

function allLimits(limits: GPUSupportedLimits): [string, string][] {
  const names: string[] = [];
  for (const name in limits) names.push(name);
  return names.map((name) =>
    [limitName(name), Number(limits[name as keyof GPUSupportedLimits]).toLocaleString("en")]);
}

async function describeGpu(): Promise<FactGroup> {
  const title = "WebGPU";
  if (!navigator.gpu) {
    const reason = isSecureContext ? "not in this browser" : "only on pages by https or localhost";
    return { title, facts: [["Available", reason]] };
  }
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) return { title, facts: [["Available", "yes, but no GPU that it may use"]] };
  const { features, limits } = adapter;
  const info: Partial<GPUAdapterInfo> = adapter.info ?? {}; // Chrome has it since 121
  const named = (text: string | undefined) => text || "not reported";
  return {
    title,
    facts: [
      ["Vendor", named(info.vendor)], ["Architecture", named(info.architecture)],
      ["Description", named(info.description)],
      ["In software", info.isFallbackAdapter ?? false],
      ["16-bit floats", features.has("shader-f16")], ["Subgroups", features.has("subgroups")],
      ["Timestamps", features.has("timestamp-query")],
      ...LIMITS.map((name): [string, string] =>
        [limitName(name), limitText(Number(limits[name]))]),
    ],
    details: { title: `All ${features.size} features and all limits`,
      facts: [["Features", [...features].sort().join(", ")], ...allLimits(limits)] },
  };
}

const describeWasm = (): FactGroup => ({
  title: "WebAssembly",
  facts: [
    ...WASM_FEATURES.map(([name, body]): [string, boolean] => [name, hasWasm(body)]),
    ["Suspending (JSPI)", "Suspending" in WebAssembly],
  ],
});

async function describePage(): Promise<FactGroup> {
  const { quota, usage } = await estimateStorage();
  const megabytes = (bytes: number | undefined) =>
    (bytes === undefined ? "not reported" : `${Math.round(bytes / 1e6).toLocaleString("en")} MB`);
  return {
    title: "Page and storage",
    facts: [
      ["Secure context", isSecureContext],
      ["Cross-origin isolated (threads)", crossOriginIsolated],
      ["Service worker", "serviceWorker" in navigator],
      ["Private file system", typeof navigator.storage?.getDirectory === "function"],
      ["Storage allowed", megabytes(quota)], ["Storage used", megabytes(usage)],
    ],
  };
}

function describeBrowser(): FactGroup {
  const { deviceMemory } = navigator as Navigator & { deviceMemory?: number };
  return {
    title: "Browser",
    facts: [
      ["Processors", String(navigator.hardwareConcurrency)],
      ["Memory", deviceMemory === undefined ? "not reported" : `${deviceMemory} GB or more`],
      ["Name", navigator.userAgent],
    ],
  };
}

/** All that can be asked without an engine. */
export const describeFeatures = (): Promise<FactGroup[]> =>
  Promise.all([describeGpu(), describeWasm(), describePage(), describeBrowser()]);
