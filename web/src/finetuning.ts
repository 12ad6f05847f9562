/** Fine-tuning of a model, as the page sees it. */
import { WickError } from "./errors.js";
import type { Leaks } from "./leaks.js";
import type { Port } from "./port.js";
import type { ExamplesInfo, FinetuneEvent } from "./types.js";

/**
 * The training of a low-rank adapter (LoRA: Hu et al., 2021), which goes on while somebody iterates
 * over it. Meanwhile the model computes with the adapter, and has no sessions.
 */
export class Finetuning implements AsyncIterable<FinetuneEvent> {
  readonly #port: Port;
  readonly #id: number;
  readonly #leaks: Leaks | undefined;
  readonly #signal: AbortSignal | undefined;
  /** What is learned from. */
  readonly examples: ExamplesInfo;
  #isClosed = false;

  /** @internal */
  constructor(port: Port, id: number, examples: ExamplesInfo, leaks: Leaks | undefined,
              signal: AbortSignal | undefined) {
    this.#port = port;
    this.#id = id;
    this.examples = examples;
    this.#leaks = leaks;
    this.#signal = signal;
    leaks?.open(this, "training");
  }

  /** Each step, and each measurement of the held-out examples. Who stops iterating may go on later. */
  async *[Symbol.asyncIterator](): AsyncIterator<FinetuneEvent> {
    for (;;) {
      const event = await this.#port.call("nextFinetuneEvent", [this.#open],
                                          { signal: this.#signal });
      if (!event) return;
      yield event;
    }
  }

  get #open(): number {
    if (this.#isClosed) throw new WickError("STATE", "the training is closed");
    return this.#id;
  }

  /** The adapter as it is now: a GGUF file, f32, for `model.addAdapter`, the command and others. */
  async adapter(options: { signal?: AbortSignal } = {}): Promise<Uint8Array<ArrayBuffer>> {
    return this.#port.call("saveFinetuning", [this.#open, "adapter"], options);
  }

  /**
   * All that the training goes on from as it is now, to be kept: `finetune` takes it as `state`, with
   * the same model, data and options. It is also what this training goes back to when its GPU is
   * lost; without one it begins again.
   */
  async checkpoint(options: { signal?: AbortSignal } = {}): Promise<Uint8Array<ArrayBuffer>> {
    return this.#port.call("saveFinetuning", [this.#open, "state"], options);
  }

  /** Ends it: the model is as it was. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#leaks?.close(this);
    await this.#port.call("endFinetuning", [this.#id]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
