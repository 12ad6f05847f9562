/** The engine's side of fine-tuning, in the module with tensors. */
import { checkTensors } from "./adapters.js";
import { WickError } from "./errors.js";
import type { Module } from "./module.js";
import { Table } from "./table.js";
import type { ExamplesInfo, FinetuneEvent, FinetuneOptions } from "./types.js";

const WORD = 4, DOUBLE = 8, EVENT_DOUBLES = 6;
const KINDS = [undefined, "step", "held-out", "restored"] as const;

/** `wick_finetune_file` */
const FILES = ["adapter", "state"];

/** Where the page says nothing. */
const DEFAULT_CONTEXT = 256;

interface Held {
  pointer: number;
  examples: number;
  model: number;
}

export class Finetunings {
  readonly #module: Module;
  readonly #device: number;
  readonly #held = new Table<Held>("training", (held) => this.#end(held));

  constructor(module: Module, device: number) {
    this.#module = module;
    this.#device = device;
  }

  /** Throws while a training of the model is open. */
  checkFree(model: number): void {
    if (this.#held.entries().some(([, held]) => held.model === model))
      throw new WickError("STATE", "the model is being trained: close that first");
  }

  /** find: throws where the model is closed. */
  async start(find: () => number, options: FinetuneOptions):
  Promise<{ id: number; info: ExamplesInfo }> {
    checkTensors(this.#module);
    const { text, jsonLines, contextLength = DEFAULT_CONTEXT, state = new Uint8Array(), ...given }
      = options;
    const m = this.#module;
    await this.#idle();
    const model = find(); // which may have been closed, or is being trained, since the call
    this.checkFree(model);
    const examples = m.pointer("examples_make", model, contextLength), at = m.put(state);
    try {
      if (text !== undefined) this.#add("examples_add_text", examples, text);
      if (jsonLines !== undefined) this.#add("examples_add_lines", examples, jsonLines);
      const info = m.record<ExamplesInfo>("examples_info", examples);
      const pointer = m.pointer("finetune_start", model, examples, JSON.stringify(given), at,
                                state.length);
      const id = this.#held.add({ pointer, examples, model });
      return { id, info };
    } catch (reason) {
      m.call("examples_release", examples);
      throw reason;
    } finally {
      m.release(at);
    }
  }

  #add(door: string, examples: number, text: string): void {
    this.#module.withBytes(new TextEncoder().encode(text), (at, size) =>
      this.#module.checked(door, examples, at, size));
  }

  /** The next event; undefined: all steps are done. */
  async next(id: number, signal: AbortSignal): Promise<FinetuneEvent | undefined> {
    const m = this.#module, at = m.alloc(EVENT_DOUBLES * DOUBLE);
    let event: FinetuneEvent | undefined;
    try {
      await m.finish(() => {
        const status = m.checked("finetune_poll", this.#held.get(id).pointer, at);
        const [code, step, steps, tokens, loss, perplexity] =
          m.memory.doubles(at, EVENT_DOUBLES) as unknown as [number, ...number[]];
        const kind = KINDS[code];
        if (!kind) return status;
        event = { kind, step: step!, steps: steps!, tokens: tokens!, loss: loss!,
                  perplexity: perplexity! };
        return 0;
      }, signal);
      return event;
    } finally {
      m.release(at);
    }
  }

  /** As it is now, as a GGUF file. */
  async save(id: number, file: string, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    const m = this.#module, at = m.alloc(2 * WORD);
    try {
      m.checked("finetune_save", this.#held.get(id).pointer, FILES.indexOf(file));
      await m.finish(() => m.checked("finetune_save_poll", this.#held.get(id).pointer, at), signal);
      const [from, size] = m.memory.words(at, 2);
      return m.memory.bytes(from!, size!).slice();
    } finally {
      m.release(at);
    }
  }

  /** The model is as it was. */
  end(id: number): Promise<void> {
    return this.#held.close(id);
  }

  endOf(model: number): Promise<void> {
    return this.#held.closeAll((held) => held.model === model);
  }

  async #end(held: Held): Promise<void> {
    await this.#idle().catch(() => undefined); // a device that is lost has nothing queued
    this.#module.call("finetune_finish", held.pointer);
    this.#module.call("examples_release", held.examples);
  }

  /** What is queued has been computed. */
  async #idle(): Promise<void> {
    const m = this.#module;
    await m.finish(() => m.checked("device_run", this.#device));
  }
}
