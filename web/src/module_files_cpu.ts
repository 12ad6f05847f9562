/** The modules of the bundle for the CPU alone, in place of module_files.ts. */
import type { ModuleFiles } from "./files.js";

export const MODULES: ModuleFiles = {
  simd: { name: "wick-cpu.wasm", url: () => new URL("./wick-cpu.wasm", import.meta.url) },
  threads: {
    name: "wick-cpu-threads.wasm",
    url: () => new URL("./wick-cpu-threads.wasm", import.meta.url),
  },
};
