/**
 * The engine's worker, in the form by which bundlers of applications find it. Only wick.ts imports
 * this file: Vite refuses a worker whose own script gets back to it.
 */
import type { WorkerFile } from "./files.js";

export const ENGINE_WORKER: WorkerFile = {
  name: "worker.js",
  open: () => new Worker(new URL("./worker.js", import.meta.url), { type: "module" }),
};
