/** Failures as a visitor reads them: what happened, and what can be done about it. */
import { WickError } from "libwick";
import type { ErrorCode } from "libwick";
import { asSentence } from "./format.js";

/** What helps, beside what the error itself says. */
const HINTS: Partial<Record<ErrorCode, string>> = {
  OUT_OF_MEMORY: "Close other tabs, choose a smaller model, or set a shorter context.",
  FORMAT: "Wick reads GGUF files; choose one of those.",
  UNSUPPORTED: "Another model, or another form of this one, may work.",
  IO: "Check the address and the network.",
  NO_DEVICE: "Set “Runs on” to “GPU if there is one” in the settings, and the CPU takes over.",
  DEVICE_LOST: "The system took the GPU away. Load the model again.",
  MISMATCH: "The file is not the one that was expected. Try again, or choose another address.",
};

export interface Problem {
  text: string;
  hint: string;
}

export function describeProblem(reason: unknown): Problem {
  const text = asSentence(reason instanceof Error ? reason.message : String(reason));
  const hint = text.includes("cut off") ? "Download it again, or choose the whole file."
    : reason instanceof WickError ? HINTS[reason.code] ?? "" : "";
  return { text, hint };
}

export const isCancelled = (reason: unknown): boolean =>
  reason instanceof WickError && reason.code === "CANCELLED";
