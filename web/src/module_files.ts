/** The package's modules. Bundlers of applications find a file by this form alone. */
import type { ModuleFiles } from "./files.js";

export const MODULES: ModuleFiles = {
  text: {
    simd: {
      name: "wick.wasm",
      url: () => new URL("./wick.wasm", import.meta.url),
    },
    threads: {
      name: "wick-threads.wasm",
      url: () => new URL("./wick-threads.wasm", import.meta.url),
    },
  },
  api: {
    simd: {
      name: "wick-api.wasm",
      url: () => new URL("./wick-api.wasm", import.meta.url),
    },
    threads: {
      name: "wick-api-threads.wasm",
      url: () => new URL("./wick-api-threads.wasm", import.meta.url),
    },
  },
  tensors: {
    simd: {
      name: "wick-tensors.wasm",
      url: () => new URL("./wick-tensors.wasm", import.meta.url),
    },
    threads: {
      name: "wick-tensors-threads.wasm",
      url: () => new URL("./wick-tensors-threads.wasm", import.meta.url),
    },
  },
};
