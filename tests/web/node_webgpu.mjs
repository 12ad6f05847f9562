// WebGPU in Node: the npm package "webgpu" over Mesa's lavapipe, as tools/setup test and
// tools/fetch_webgpu --drivers fetch them.
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const driver = fileURLToPath(new URL("../../deps/lavapipe/lvp_icd.json", import.meta.url));

/** Why there is none here; undefined: there is. */
export const missing = existsSync(driver) ? undefined
  : "WebGPU needs lavapipe (deps/lavapipe, tools/fetch_webgpu --drivers)";

/** A navigator.gpu, with the names of its flags in the global object as a page has them. */
export async function openWebGpu() {
  process.env.VK_DRIVER_FILES = driver;
  process.env.GALLIVM_PERF ??= "nopt"; // compiles in two thirds of the time
  process.env.XDG_RUNTIME_DIR ??= "/tmp"; // without it the loader of Vulkan complains
  const { create, globals } = await import("webgpu");
  Object.assign(globalThis, globals);
  // By which it asks again and again whether the driver is done.
  globalThis.setImmediate = (callback) => setTimeout(callback, 1);
  return create([]);
}
