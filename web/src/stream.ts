/** Streams through messages: not every browser passes a ReadableStream to a worker. */
import { fromPlain, toPlain, WickError } from "./errors.js";
import type { PlainError } from "./errors.js";

type Answer =
  | { kind: "bytes"; bytes: Uint8Array }
  | { kind: "end" }
  | { kind: "failed"; error: PlainError };

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
