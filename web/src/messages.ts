/** The engine's calls by their names, and the messages between a page and its worker. */
import type { CallContext, Engine, EngineOptions, Notice } from "./engine.js";
import type { PlainError } from "./errors.js";
import type { Progress } from "./types.js";

type Calls = {
  [K in keyof Engine as Engine[K] extends (context: CallContext, ...given: never[]) => unknown
    ? K : never]: Engine[K];
};
export type CallName = keyof Calls;
export type CallArguments<K extends CallName> =
  Calls[K] extends (context: CallContext, ...given: infer A) => unknown ? A : never;
export type CallResult<K extends CallName> =
  Calls[K] extends (...given: never[]) => infer R ? Awaited<R> : never;

/** What the page sends to its worker. */
export type Request =
  | { kind: "open"; options: EngineOptions; baseUrl: string | undefined }
  | { kind: "call"; id: number; name: CallName; given: unknown[] }
  | { kind: "cancel"; id: number }
  /** Of the worker for a thread: it is ready, or why it is not. */
  | { kind: "thread"; id: number; failure: string | undefined };

/** What the worker sends back. */
export type Reply =
  | { kind: "opened" }
  | { kind: "failed"; error: PlainError }
  | { kind: "notice"; notice: Notice }
  | { kind: "thread"; id: number; port: MessagePort }
  | { kind: "progress"; id: number; value: Progress }
  | { kind: "result"; id: number; value: unknown }
  | { kind: "error"; id: number; error: PlainError };
