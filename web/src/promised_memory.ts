/** How much memory a page may count on: browsers do not say, so by what the device is. */
import { importInNode, isNode } from "./files.js";

const GIB = 2 ** 30;
/** What WebAssembly can address. */
export const MOST_BYTES = 4 * GIB;

interface Hints {
  /** GiB of the machine, rounded down to a power of two; only Chromium reports it. */
  deviceMemory?: number;
  userAgentData?: { mobile: boolean };
  userAgent?: string;
  maxTouchPoints?: number;
}

/** Phones and tablets; an iPad says that it is a Mac, but no Mac is touched. */
function isMobile({ userAgentData, userAgent = "", maxTouchPoints = 0 }: Hints): boolean {
  return userAgentData?.mobile === true || /Android|iPhone|iPad|Mobile/.test(userAgent)
    || (userAgent.includes("Macintosh") && maxTouchPoints > 1);
}

export interface PromisedMemory {
  /** Bytes of WebAssembly memory. */
  bytes: number;
  /** What a GPU holds counts, too: the system ends a tab that takes more. */
  isShared: boolean;
}

/**
 * limit: what the caller wants instead. A tab of a phone is ended at 1 to 1.5 GB; elsewhere a tab
 * may have half of the machine.
 */
export async function promisedMemory(limit?: number): Promise<PromisedMemory> {
  const found = await ofDevice();
  return { ...found, bytes: limit ?? found.bytes };
}

async function ofDevice(): Promise<PromisedMemory> {
  if (isNode()) {
    const { totalmem } = await importInNode<{ totalmem(): number }>("node:os");
    return { bytes: Math.min(totalmem(), MOST_BYTES), isShared: false };
  }
  const hints = navigator as Hints;
  const half = (hints.deviceMemory ?? Infinity) / 2 * GIB;
  if (!isMobile(hints)) return { bytes: Math.min(half, MOST_BYTES), isShared: false };
  return { bytes: Math.min(half, hints.deviceMemory! >= 8 ? 1.5 * GIB : GIB), isShared: true };
}
