/**
 * libwick/openai: a client of OpenAI's API in the form of the official one, for a model in this
 * page (`Model.api`) or for any server of the API. It needs nothing else of the package.
 *
 * ```js
 * const wick = await Wick.open({ api: true });
 * const model = await wick.load("model.gguf");
 * const client = new OpenAI(await model.api());
 * const { choices } = await client.chat.completions.create({
 *   messages: [{ role: "user", content: "Why is the sky blue?" }] });
 * ```
 */
import type {
  AnswerResponse, ChatCompletion, ChatCompletionChunk, ChatCompletionCreateParams, Completion,
  CompletionCreateParams, CreateEmbeddingResponse, EmbeddingCreateParams, ListedModel,
  ResponseCreateParams, ResponseStreamEvent,
} from "./openai_types.js";

export type * from "./openai_types.js";

/** An `Api` of libwick is one. */
export interface ClientOptions {
  /** What answers, in place of the network. */
  fetch?: typeof fetch;
  /** Default: `http://wick/v1`, for which an `Api` answers. */
  baseURL?: string;
  /** Sent as a Bearer. */
  apiKey?: string | null;
}

export interface RequestOptions {
  /** Gives the request up, and what the model computes for it. */
  signal?: AbortSignal | null;
  headers?: Record<string, string>;
}

/** A request that was not answered as asked. */
export class APIError extends Error {
  override readonly name = "APIError";
  /** Of HTTP; undefined: in the middle of a stream. */
  readonly status: number | undefined;
  /** As the API describes it: `message`, `type`, `code` ... */
  readonly error: { message?: string; type?: string; code?: number | string };

  constructor(status: number | undefined, error: APIError["error"]) {
    super([status, error.message ?? "the server gave no reason"].filter((part) => part).join(" "));
    this.status = status;
    this.error = error;
  }
}

/** What an answer or an event says is wrong. */
const errorOf = (event: unknown): APIError["error"] | undefined =>
  (event as { error?: APIError["error"] | null } | null)?.error ?? undefined;

/** Events as they come; leaving the loop gives the rest up. */
export class Stream<T> implements AsyncIterable<T> {
  readonly controller: AbortController;
  readonly #events: AsyncGenerator<T, void>;

  /** @internal */
  constructor(response: Response, controller: AbortController) {
    this.controller = controller;
    this.#events = readEvents<T>(response, controller);
  }

  /** Once. */
  [Symbol.asyncIterator](): AsyncIterator<T, void> {
    return this.#events;
  }
}

/** The texts of `data` in a stream of server-sent events. */
async function* readData(body: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const reader = body.getReader(), decoder = new TextDecoder();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      rest += done ? "\n\n" : decoder.decode(value, { stream: true });
      const events = rest.split(/\r?\n\r?\n/);
      rest = events.pop()!;
      for (const event of events) {
        const data = event.split(/\r?\n/).filter((line) => line.startsWith("data:"))
          .map((line) => line.slice(5).trimStart());
        if (data.length > 0) yield data.join("\n");
      }
      if (done) return;
    }
  } finally {
    reader.releaseLock();
  }
}

async function* readEvents<T>(response: Response,
                              controller: AbortController): AsyncGenerator<T, void> {
  let isOver = false;
  try {
    for await (const data of readData(response.body!)) {
      if (data === "[DONE]") break;
      const event = JSON.parse(data) as T;
      const isFailed = !("type" in Object(event)) || (event as { type: string }).type === "error";
      const error = isFailed ? errorOf(event) : undefined;
      if (error) throw new APIError(undefined, error);
      yield event;
    }
    isOver = true;
  } finally {
    if (!isOver) controller.abort();
  }
}

type Streamed = { stream: true };
type Whole = { stream?: false | null };

class Completions<Params extends { stream?: boolean | null }, Result, Event> {
  readonly #post: Post;
  readonly #path: string;

  /** @internal */
  constructor(post: Post, path: string) {
    this.#post = post;
    this.#path = path;
  }

  create(params: Params & Streamed, options?: RequestOptions): Promise<Stream<Event>>;
  create(params: Params & Whole, options?: RequestOptions): Promise<Result>;
  create(params: Params, options?: RequestOptions): Promise<Result | Stream<Event>>;
  async create(params: Params, options?: RequestOptions): Promise<Result | Stream<Event>> {
    const { response, controller } = await this.#post(this.#path, params, options);
    return params.stream ? new Stream<Event>(response, controller)
      : withText(await response.json()) as Result;
  }
}

/** As the official client, `output_text` is all texts of an answer of /v1/responses. */
function withText(answer: { object?: string; output?: AnswerResponse["output"] }): object {
  if (answer.object !== "response") return answer;
  const parts = answer.output!.flatMap((item) => (item.type === "message" ? item.content : []));
  return { ...answer, output_text: parts.map(({ text }) => text).join("") };
}

type Post = (path: string, body: object | undefined, options: RequestOptions | undefined) =>
  Promise<{ response: Response; controller: AbortController }>;

export class OpenAI {
  readonly chat: {
    completions: Completions<ChatCompletionCreateParams, ChatCompletion, ChatCompletionChunk>;
  };
  readonly completions: Completions<CompletionCreateParams, Completion, Completion>;
  readonly responses: Completions<ResponseCreateParams, AnswerResponse, ResponseStreamEvent>;
  readonly embeddings: {
    create<T extends EmbeddingCreateParams>(params: T, options?: RequestOptions):
      Promise<CreateEmbeddingResponse<T extends { encoding_format: "base64" } ? string : number[]>>;
  };
  readonly models: {
    list(options?: RequestOptions): Promise<{ object: "list"; data: ListedModel[] }>;
  };

  constructor({ fetch: get = fetch, baseURL = "http://wick/v1", apiKey }: ClientOptions = {}) {
    const send: Post = async (path, body, options = {}) => {
      const controller = new AbortController(), { signal } = options;
      const abort = () => controller.abort(signal!.reason);
      if (signal?.aborted) abort();
      signal?.addEventListener("abort", abort, { once: true });
      const response = await get(`${baseURL.replace(/\/$/, "")}${path}`, {
        method: body ? "POST" : "GET",
        headers: { ...(body && { "content-type": "application/json" }),
                   ...(apiKey && { authorization: `Bearer ${apiKey}` }), ...options.headers },
        ...(body && { body: JSON.stringify(body) }),
        signal: controller.signal,
      });
      if (response.ok) return { response, controller };
      const text = await response.text();
      let error: APIError["error"] = { message: text };
      try {
        error = errorOf(JSON.parse(text)) ?? error;
      } catch {
        // Not the API's: what stands before it.
      }
      throw new APIError(response.status, error);
    };
    const json = async <T>(path: string, body?: object, options?: RequestOptions): Promise<T> =>
      (await (await send(path, body, options)).response.json()) as T;
    this.chat = { completions: new Completions(send, "/chat/completions") };
    this.completions = new Completions(send, "/completions");
    this.responses = new Completions(send, "/responses");
    this.embeddings = { create: (params, options) => json("/embeddings", params, options) };
    this.models = { list: (options) => json("/models", undefined, options) };
  }
}

export default OpenAI;
