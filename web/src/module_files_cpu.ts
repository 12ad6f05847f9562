/** The modules of the bundle for the CPU alone, in place of module_files.ts. */
import type { ModuleFiles } from "./files.js";

export const MODULES: ModuleFiles = {
  text: {
    simd: {
      name: "wick-cpu.wasm",
      url: () => new URL("./wick-cpu.wasm", import.meta.url),
    },
    threads: {
      name: "wick-cpu-threads.wasm",
      url: () => new URL("./wick-cpu-threads.wasm", import.meta.url),
    },
  },
  api: {
    simd: {
      name: "wick-cpu-api.wasm",
      url: () => new URL("./wick-cpu-api.wasm", import.meta.url),
    },
    threads: {
      name: "wick-cpu-api-threads.wasm",
      url: () => new URL("./wick-cpu-api-threads.wasm", import.meta.url),
    },
  },
  tensors: {
    simd: {
      name: "wick-cpu-tensors.wasm",
      url: () => new URL("./wick-cpu-tensors.wasm", import.meta.url),
    },
    threads: {
      name: "wick-cpu-tensors-threads.wasm",
      url: () => new URL("./wick-cpu-tensors-threads.wasm", import.meta.url),
    },
  },
};
