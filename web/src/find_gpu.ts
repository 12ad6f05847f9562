/** Where WebGPU comes from. */
import { importInNode, isNode } from "./files.js";
import type { OpenOptions } from "./types.js";

/** WebGPU of the page, of Node, or by the npm package "webgpu" where that is installed. */
export async function findGpu(options: OpenOptions): Promise<GPU | undefined> {
  if (options.gpu) return options.gpu;
  const { navigator } = globalThis as { navigator?: { gpu?: GPU } };
  if (navigator?.gpu || !isNode() || options.backend === "cpu") return navigator?.gpu;
  try {
    const { create, globals } =
      await importInNode<{ create(flags: string[]): GPU; globals: object }>("webgpu");
    Object.assign(globalThis, globals);
    return create([]);
  } catch {
    return undefined;
  }
}
