/** What computes here, in words. */
import type { Capabilities } from "libwick";

const CACHES: Record<Capabilities["cache"], string> = {
  "opfs": "the site's private files", "cache-api": "the browser's cache",
  "memory": "memory, while the page is open",
};

const yes = (has: boolean): string => (has ? "yes" : "no");

/** A short name, and why it is not the GPU where it is not. */
export function describeDevice({ device }: Capabilities): { name: string; reason: string } {
  if (device.backend === "webgpu") return { name: `GPU · ${device.name}`, reason: "" };
  const threads = device.threads > 1 ? ` · ${device.threads} threads` : "";
  const reason = device.isFallback ? `The CPU computes, because ${device.fallbackReason}.` : "";
  return { name: `CPU${threads}`, reason };
}

export function deviceFacts(c: Capabilities): [string, string][] {
  const { device } = c;
  const facts: [string, string][] = [
    ["Runs on", device.backend === "webgpu" ? "the GPU, by WebGPU" : "the CPU"],
    ["Hardware", device.name],
    ["Arithmetic", device.math],
  ];
  if (device.adapter) {
    const { vendor, architecture, f16, subgroups, dot4, timestamps } = device.adapter;
    facts.push(["Vendor", [vendor, architecture].filter((part) => part !== "").join(", ")],
               ["16-bit floats", yes(f16)], ["Subgroups", yes(subgroups)],
               ["Products of bytes", yes(dot4)], ["Timestamps", yes(timestamps)]);
  } else {
    facts.push(["Instructions", device.isa], ["Threads", String(device.threads)]);
  }
  facts.push(["Cross-origin isolated", yes(c.isCrossOriginIsolated)],
             ["Downloads are kept in", CACHES[c.cache]],
             ["Wick", c.version]);
  return facts;
}
