/** The engine's side of APIs (wick/api.h): the bytes of requests in, those of answers out. */
import type { Module } from "./module.js";
import { Table } from "./table.js";
import type { ApiOptions } from "./types.js";

const PENDING = 1;

export interface ApiRequest {
  method: string;
  /** Without a query. */
  path: string;
  body: Uint8Array;
}

/** What has come of an answer: nothing more does if it is over. */
export interface AnswerPart {
  /** Of HTTP. */
  status: number;
  /** The media type. */
  type: string;
  bytes: Uint8Array<ArrayBuffer>;
  isOver: boolean;
}

interface Held {
  pointer: number;
  model: number;
}

interface Exchange {
  pointer: number;
  api: number;
}

export class Apis {
  readonly #module: Module;
  readonly #held = new Table<Held>("API");
  readonly #exchanges = new Table<Exchange>("request");
  /** A number that a door writes. */
  readonly #scratch: number;

  constructor(module: Module) {
    this.#module = module;
    this.#scratch = module.alloc(4);
  }

  /** model: its pointer. */
  open(model: number, options: ApiOptions): number {
    const m = this.#module;
    const { name = "", chatTemplate = "", parallel = 0, maxQueue = 0, ...sessions } = options;
    m.checkDoor("api_open", "APIs", "api");
    const pointer = m.pointer("api_open", model, name, chatTemplate, parallel, maxQueue,
                              JSON.stringify(sessions));
    return this.#held.add({ pointer, model });
  }

  /** Answers that are not complete fail. */
  async close(id: number): Promise<void> {
    const held = this.#held.take(id);
    if (!held) return;
    for (const [exchange, { api }] of this.#exchanges.entries())
      if (api === held.pointer) this.end(exchange);
    this.#module.call("api_close", held.pointer);
  }

  async closeOf(model: number): Promise<void> {
    for (const [id, held] of this.#held.entries()) if (held.model === model) await this.close(id);
  }

  /** The number of an exchange: a request that is being answered. */
  begin(id: number, { method, path, body }: ApiRequest): number {
    const m = this.#module;
    const api = this.#held.get(id).pointer;
    const now = new Date(), seconds = Math.floor(now.getTime() / 1000);
    const pointer = m.withBytes(body, (at, size) =>
      m.pointer("exchange_open", api, method, path, at, size, seconds,
                -60 * now.getTimezoneOffset()));
    return this.#exchanges.add({ pointer, api });
  }

  /** What comes next of the answer, as soon as there is something; the others go on, too. */
  async next(exchange: number, signal: AbortSignal): Promise<AnswerPart> {
    const m = this.#module;
    let part: AnswerPart;
    await m.finish(() => {
      const { api } = this.#exchanges.get(exchange);
      m.checked("api_step", api);
      part = this.#take(exchange);
      return part.isOver || part.bytes.length > 0 ? 0 : PENDING;
    }, signal);
    if (part!.isOver) this.end(exchange);
    return part!;
  }

  #take(exchange: number): AnswerPart {
    const m = this.#module;
    const { pointer } = this.#exchanges.get(exchange);
    const isOver = m.call("exchange_is_over", pointer) !== 0;
    const at = m.call("exchange_take", pointer, this.#scratch);
    const [size] = m.memory.words(this.#scratch, 1) as unknown as [number];
    return {
      status: m.call("exchange_status", pointer), isOver,
      type: m.memory.text(m.call("exchange_type", pointer)),
      bytes: m.memory.bytes(at, size).slice(),
    };
  }

  /** What is being computed for it is given up. */
  end(exchange: number): void {
    const held = this.#exchanges.take(exchange);
    if (!held) return;
    this.#module.call("exchange_close", held.pointer);
    this.#module.gpus.stir(); // a call that waits for the next part ends
  }
}
