/** The engine's worker in the bundle for the CPU alone, in place of engine_worker.ts. */
import type { WorkerFile } from "./files.js";

export const ENGINE_WORKER: WorkerFile = {
  name: "cpu-worker.js",
  open: () => new Worker(new URL("./cpu-worker.js", import.meta.url), { type: "module" }),
};
