/**
 * Streams, and functions to fetch with, through messages: no function passes to a worker, and not
 * in every browser a ReadableStream.
 */
import { fromPlain, messageOf, toPlain, WickError } from "./errors.js";
import type { PlainError } from "./errors.js";

type Answer =
  | { kind: "bytes"; bytes: Uint8Array }
  | { kind: "end" }
  | { kind: "failed"; error: PlainError };

/** One of them among the arguments of a call. */
export interface Carried {
  port: MessagePort;
  isStream: boolean;
}

/** What a stream of a page has failed with. */
export function streamError(cause: unknown): WickError {
  if (cause instanceof WickError) return cause;
  const words = cause instanceof Error ? cause.message : String(cause);
  return new WickError("IO", `the stream has failed: ${words}`, { cause });
}

/** A port through which a stream is asked for its pieces, one at a time. */
export function sendStream(stream: ReadableStream<Uint8Array>): MessagePort {
  const { port1, port2 } = new MessageChannel();
  const reader = stream.getReader();
  const answer = (value: Answer) => port1.postMessage(value);
  port1.onmessage = async ({ data }: MessageEvent<"next" | "cancel">) => {
    if (data === "cancel") {
      port1.close();
      await reader.cancel().catch(() => undefined);
      return;
    }
    try {
      const { done, value } = await reader.read();
      answer(done ? { kind: "end" } : { kind: "bytes", bytes: value });
      if (done) port1.close();
    } catch (reason) {
      answer({ kind: "failed", error: toPlain(streamError(reason)) });
      port1.close();
    }
  };
  return port2;
}

/** The stream at the other end of such a port. */
export function receiveStream(port: MessagePort): ReadableStream<Uint8Array> {
  let answered: (answer: Answer) => void = () => undefined;
  port.onmessage = ({ data }: MessageEvent<Answer>) => answered(data);
  port.onmessageerror = () => answered({ kind: "failed", error: toPlain(new WickError(
    "OUT_OF_MEMORY", "a piece of the stream cannot be passed on; is there memory for it?")) });
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const answer = await new Promise<Answer>((resolve) => {
        answered = resolve;
        port.postMessage("next");
      });
      if (answer.kind === "bytes") controller.enqueue(answer.bytes);
      else if (answer.kind === "end") controller.close();
      else controller.error(fromPlain(answer.error));
      if (answer.kind !== "bytes") port.close();
    },
    cancel() {
      port.postMessage("cancel");
      port.close();
    },
  }, { highWaterMark: 0 });
}

/** A request to a function to fetch with; without an address: that one is not wanted any more. */
interface Wanted {
  id: number;
  url?: string;
  method?: string;
  headers?: [string, string][];
}

type Fetched = { id: number } & ({ error: string } | {
  status: number;
  statusText: string;
  headers: [string, string][];
  body: MessagePort | undefined;
});

/** Headers as they pass through messages. */
export function headerList(headers: HeadersInit | undefined): [string, string][] {
  const list: [string, string][] = [];
  new Headers(headers).forEach((value, name) => list.push([name, value]));
  return list;
}

/** In Node a port keeps the process alive, which the other side of this one need not. */
const detach = (port: MessagePort): void => (port as { unref?(): void }).unref?.();

/** A port through which a function of the page is asked to fetch. */
export function sendFetch(get: typeof fetch): MessagePort {
  const { port1, port2 } = new MessageChannel();
  const running = new Map<number, AbortController>();
  const answer = async ({ id, url, ...init }: Wanted & { url: string }) => {
    const controller = new AbortController();
    running.set(id, controller);
    try {
      const { status, statusText, headers, body } =
        await get(url, { ...init, cache: "no-store", signal: controller.signal });
      const port = body ? sendStream(body) : undefined;
      const fetched: Fetched = { id, status, statusText, headers: headerList(headers), body: port };
      port1.postMessage(fetched, port ? [port] : []);
    } catch (reason) {
      running.delete(id);
      port1.postMessage({ id, error: messageOf(reason) } satisfies Fetched);
    }
  };
  port1.onmessage = ({ data }: MessageEvent<Wanted>) => {
    if (data.url !== undefined) return void answer({ ...data, url: data.url });
    running.get(data.id)?.abort();
    running.delete(data.id);
  };
  detach(port1);
  return port2;
}

/** The function at the other end of such a port. */
export function receiveFetch(port: MessagePort): typeof fetch {
  const waiting = new Map<number, (fetched: Fetched) => void>();
  let last = 0;
  port.onmessage = ({ data }: MessageEvent<Fetched>) => {
    waiting.get(data.id)?.(data);
    waiting.delete(data.id);
  };
  detach(port);
  return (url, { method = "GET", headers, signal } = {}) => new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason as Error);
    const id = ++last;
    waiting.set(id, (fetched) => {
      if ("error" in fetched) return reject(new TypeError(fetched.error));
      const { body, ...init } = fetched;
      try {
        resolve(new Response(body ? receiveStream(body) : null, init));
      } catch (error) { // a status that no server sends: of an opaque answer
        reject(error as Error);
      }
    });
    signal?.addEventListener("abort", () => {
      port.postMessage({ id } satisfies Wanted);
      reject(signal.reason as Error);
    }, { once: true });
    port.postMessage({ id, url: String(url), method, headers: headerList(headers) } as Wanted);
  });
}
