/** What several devices of an engine have done, as if they were one. */
import type { DeviceStats, KernelStats } from "./types.js";

/** Sums, but of the longest submit. */
export function mergeStats(all: DeviceStats[]): DeviceStats {
  return all.reduce((a, b) => add(a, b, {
    longestSubmitSeconds: Math.max(a.longestSubmitSeconds, b.longestSubmitSeconds),
  }));
}

/** The kernels of all, each once. */
export function mergeProfiles(all: KernelStats[][]): KernelStats[] {
  const merged = new Map<string, KernelStats>();
  for (const kernel of all.flat()) {
    const { name } = kernel, other = merged.get(name);
    merged.set(name, other ? add(other, kernel, { name }) : kernel);
  }
  return [...merged.values()];
}

function add<T extends object>(a: T, b: T, others: Partial<T>): T {
  const [x, y] = [a, b] as Record<string, number>[];
  const sums = Object.keys(a).map((key) => [key, x![key]! + y![key]!]);
  return { ...Object.fromEntries(sums), ...others } as T;
}
