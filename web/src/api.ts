/** The APIs of a model, as a function to fetch with that never leaves the page. */
import type { AnswerPart } from "./apis.js";
import type { Port } from "./port.js";

export class Api {
  readonly #port: Port;
  readonly #id: number;

  /**
   * In place of the page's own, for a client of one of the APIs: it answers `/v1/chat/completions`
   * and the other paths of `wick/api.h` at any origin, and reaches no network.
   */
  readonly fetch: typeof fetch = (input, init) => this.#answer(new Request(input, init));

  /** @internal */
  constructor(port: Port, id: number) {
    this.#port = port;
    this.#id = id;
  }

  async #answer(request: Request): Promise<Response> {
    const { method, url, signal } = request;
    const body = new Uint8Array(await request.arrayBuffer());
    const path = new URL(url).pathname;
    signal.throwIfAborted();
    const exchange = await this.#port.call("beginExchange", [this.#id, { method, path, body }]);
    const end = () => this.#port.call("endExchange", [exchange]).catch(() => undefined);
    const next = (): Promise<AnswerPart> => this.#port.call("nextPart", [exchange], { signal })
      .catch(async (reason: unknown) => {
        await end();
        throw signal.aborted ? signal.reason : reason;
      });
    const first = await next();
    const { status, type } = first;
    const headers = { "content-type": type };
    if (first.isOver)
      return new Response(method === "HEAD" ? null : first.bytes, { status, headers });
    signal.addEventListener("abort", () => void end(), { once: true });
    let part: AnswerPart | undefined = first;
    const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
      async pull(controller) {
        const { bytes, isOver } = part ?? await next();
        part = undefined;
        if (bytes.length > 0) controller.enqueue(bytes);
        if (isOver) controller.close();
      },
      async cancel() {
        await end();
      },
    }, { highWaterMark: 0 });
    return new Response(stream, { status, headers });
  }

  /** Answers that are not complete fail. */
  close(): Promise<void> {
    return this.#port.call("closeApi", [this.#id]);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
