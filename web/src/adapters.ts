/** The engine's side of adapters, in the module with tensors. */
import type { Module } from "./module.js";
import { Table } from "./table.js";

interface Held {
  pointer: number;
  model: number;
}

export function checkTensors(module: Module): void {
  module.checkDoor("finetune_start", "fine-tuning and adapters", "tensors");
}

export class Adapters {
  readonly #module: Module;
  readonly #held = new Table<Held>("adapter");

  constructor(module: Module) {
    this.#module = module;
  }

  /** For all sessions to come. */
  addWhole(model: number, file: Uint8Array, scale: number): void {
    checkTensors(this.#module);
    this.#module.withBytes(file, (at, size) =>
      this.#module.checked("model_add_adapter", model, at, size, scale));
  }

  load(model: number, file: Uint8Array): number {
    checkTensors(this.#module);
    const pointer = this.#module.withBytes(file, (at, size) =>
      this.#module.pointer("lora_open", model, at, size));
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
