/**
 * What the bundle for the CPU alone has in place of gpu.ts and find_gpu.ts: its module imports
 * nothing of a GPU, and says itself why there is none.
 */
import type { findGpu as find } from "./find_gpu.js";
import type { Gpus as WithGpus } from "./gpu.js";
import { Waiting } from "./waiting.js";

export const findGpu: typeof find = () => Promise.resolve(undefined);

export class Gpus extends Waiting implements Pick<WithGpus, keyof WithGpus> {
  readonly isBusy = false;

  find(): ReturnType<WithGpus["find"]> {
    return Promise.resolve({ isSoftware: false, reason: "" });
  }

  lose(): void {}

  imports(): ReturnType<WithGpus["imports"]> {
    return {};
  }
}
