/** Kernels of the page's own, in WGSL, run in order with the other operations on tensors. */
import type { Commands } from "./commands.js";
import { WickError } from "./errors.js";
import type { Tensor } from "./tensor.js";
import type { KernelOptions } from "./tensor_types.js";

/** How often a kernel runs: workgroups in x, y and z, or the least number of threads, which are
 * spread over x and y as by `wick_kernel_workgroups`. */
export type KernelSize = number[] | { threads: number };

/** What a command says of a run. */
export interface Launch {
  workgroups: number[] | number;
  uniform: Uint8Array;
}

export class Kernel {
  readonly #commands: Commands;
  readonly #id: number;
  readonly #uniformBytes: number;
  #isDisposed = false;

  /** Compiles it; a failure has the compiler's words. @internal */
  static async make(commands: Commands, options: KernelOptions, signal?: AbortSignal) {
    const id = commands.newId();
    await commands.call("makeKernel", [id, options], { signal });
    return new Kernel(commands, id, options.uniformBytes ?? 0);
  }

  private constructor(commands: Commands, id: number, uniformBytes: number) {
    this.#commands = commands;
    this.#id = id;
    this.#uniformBytes = uniformBytes;
  }

  /** Its number, for a command of the engine that it belongs to. @internal */
  use(commands: Commands): number {
    if (commands !== this.#commands)
      throw new WickError("ARGUMENT", "the kernel belongs to another engine");
    if (this.#isDisposed) throw new WickError("STATE", "the kernel is disposed");
    return this.#id;
  }

  /** @internal */
  launch(size: KernelSize, uniform?: ArrayBufferView): Launch {
    if (!Array.isArray(size) && typeof size?.threads !== "number")
      throw new WickError("ARGUMENT", "a kernel runs in [x, y, z] workgroups or in { threads }");
    const bytes = uniform
      ? new Uint8Array(uniform.buffer, uniform.byteOffset, uniform.byteLength).slice()
      : new Uint8Array(0);
    if (bytes.length !== this.#uniformBytes)
      throw new WickError("ARGUMENT", `${bytes.length} bytes of uniform are given to a kernel that `
        + `was made for ${this.#uniformBytes}`);
    return { workgroups: Array.isArray(size) ? size : size.threads, uniform: bytes };
  }

  /** Runs the kernel after the operations before it; later ones see what it wrote. An error comes
   * with the next answer, as for any operation. */
  run(tensors: Tensor[], size: KernelSize, uniform?: ArrayBufferView): void {
    this.#commands.give({
      kind: "run", kernel: this.use(this.#commands),
      tensors: tensors.map((tensor) => tensor.use(this.#commands)), ...this.launch(size, uniform),
    });
  }

  /** Runs that were given still run. */
  dispose(): void {
    if (this.#isDisposed) return;
    this.#isDisposed = true;
    void this.#commands.call("releaseKernel", [this.#id]).catch(() => undefined);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
