/** The engine's side of adapters, in the module with tensors. */
import { WickError } from "./errors.js";
import type { Module } from "./module.js";
import { Table } from "./table.js";

interface Held {
  pointer: number;
  model: number;
}

export function checkTensors(module: Module): void {
  if (!module.hasDoor("finetune_start"))
    throw new WickError("UNSUPPORTED", "fine-tuning and adapters are in the module with tensors: "
      + "open the engine with { tensors: true }");
}

export class Adapters {
  readonly #module: Module;
  readonly #held = new Table<Held>("adapter");

  constructor(module: Module) {
    this.#module = module;
  }

  #withFile<T>(file: Uint8Array, call: (at: number) => T): T {
    checkTensors(this.#module);
    const at = this.#module.put(file);
    try {
      return call(at);
    } finally {
      this.#module.release(at);
    }
  }

  /** For all sessions to come. */
  addWhole(model: number, file: Uint8Array, scale: number): void {
    this.#withFile(file, (at) =>
      this.#module.checked("model_add_adapter", model, at, file.length, scale));
  }

  load(model: number, file: Uint8Array): number {
    const pointer = this.#withFile(file, (at) =>
      this.#module.pointer("lora_open", model, at, file.length));
    return this.#held.add({ pointer, model });
  }

  close(id: number): void {
    if (!this.#held.has(id)) return;
    this.#module.checked("lora_close", this.#held.get(id).pointer);
    this.#held.take(id);
  }

  /** The model closes them. */
  forget(model: number): void {
    for (const [id, held] of this.#held.entries()) if (held.model === model) this.#held.take(id);
  }

  /** As `wick_lora_use` has them: an address and a float each. */
  uses(uses: [number, number][]): Uint8Array {
    const view = new DataView(new ArrayBuffer(8 * uses.length));
    uses.forEach(([id, scale], i) => {
      view.setUint32(8 * i, this.#held.get(id).pointer, true);
      view.setFloat32(8 * i + 4, scale, true);
    });
    return new Uint8Array(view.buffer);
  }
}
