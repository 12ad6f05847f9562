/** A thread's worker in the bundle for the CPU alone, in place of thread_worker.ts. */
import type { WorkerFile } from "./files.js";

export const THREAD_WORKER: WorkerFile = {
  name: "cpu-threads-worker.js",
  open: () => new Worker(new URL("./cpu-threads-worker.js", import.meta.url), { type: "module" }),
};
