/** Adapters of a model, as the page sees them. */
import { checkArray, kindOf, WickError } from "./errors.js";
import type { Port } from "./port.js";

/** A low-rank adapter (LoRA: Hu et al., 2021) that sessions of its model choose. */
export class Adapter {
  readonly #port: Port;
  readonly #id: number;

  /** @internal */
  constructor(port: Port, id: number) {
    this.#port = port;
    this.#id = id;
  }

  /** Its number, for a session of the engine that it belongs to. @internal */
  use(port: Port): number {
    if (port === this.#port) return this.#id;
    throw new WickError("ARGUMENT", "the adapter belongs to another engine");
  }

  /** STATE while sessions use it. The model closes what is left. */
  close(): Promise<void> {
    return this.#port.call("closeAdapter", [this.#id]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

/** Adds scale alpha / rank B (A x) to the products W x of the adapter's matrices. */
export interface AdapterUse {
  adapter: Adapter;
  /** Default: 1, as it was trained. */
  scale?: number;
}

/** The numbers of a session's adapters, each with its scale. */
export function adapterUses(uses: AdapterUse[], port: Port): [number, number][] {
  checkArray(uses, "adapters");
  return uses.map((use) => {
    if (!(use?.adapter instanceof Adapter))
      throw new WickError("ARGUMENT",
        `an adapter is what model.loadAdapter gave, not ${kindOf(use?.adapter)}`);
    return [use.adapter.use(port), use.scale ?? 1];
  });
}

/** The bytes of an adapter's file. */
export function adapterFile(file: Uint8Array | ArrayBuffer): Uint8Array {
  if (file instanceof Uint8Array || file instanceof ArrayBuffer) return new Uint8Array(file);
  throw new WickError("ARGUMENT", `an adapter is the bytes of a file, not ${kindOf(file)}`);
}
