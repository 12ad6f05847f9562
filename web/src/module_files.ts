/** The package's modules. Bundlers of applications find a file by this form alone. */
import type { ModuleFiles } from "./files.js";

export const MODULES: ModuleFiles = {
  simd: { name: "wick.wasm", url: () => new URL("./wick.wasm", import.meta.url) },
  threads: {
    name: "wick-threads.wasm",
    url: () => new URL("./wick-threads.wasm", import.meta.url),
  },
};
