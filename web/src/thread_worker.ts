/** A thread's worker, imported by thread_workers.ts alone: see engine_worker.ts. */
import type { WorkerFile } from "./files.js";

export const THREAD_WORKER: WorkerFile = {
  name: "threads-worker.js",
  open: () => new Worker(new URL("./threads-worker.js", import.meta.url), { type: "module" }),
};
