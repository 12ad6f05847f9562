/** What can go wrong: one class, whose code is the status of the C library. */

/** The statuses of the C library (wick/base.h), by name and number. */
const STATUS = {
  ARGUMENT: -1, SHAPE: -2, DIM: -3, DTYPE: -4, INDEX: -5, VALUE: -6, STATE: -7,
  OUT_OF_MEMORY: -8, UNSUPPORTED: -9, NOT_FOUND: -10, IO: -11, FORMAT: -12, NO_DEVICE: -13,
  DEVICE_LOST: -14, DEVICE: -15, MISMATCH: -16, CANCELLED: -17, INTERNAL: -18,
} as const;

/** Which kind of failure a {@link WickError} is, as `WICK_ERR_...` of the C library. */
export type ErrorCode = keyof typeof STATUS;

export interface ErrorDetails {
  cause?: unknown;
  /** For OUT_OF_MEMORY: what was asked for and what there was. */
  bytesRequested?: number | undefined;
  bytesAvailable?: number | undefined;
}

/** A failure: its code, and a sentence that says what was wrong and what can be done. */
export class WickError extends Error {
  readonly code: ErrorCode;
  readonly bytesRequested: number | undefined;
  readonly bytesAvailable: number | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = "WickError";
    this.code = code;
    this.bytesRequested = details.bytesRequested;
    this.bytesAvailable = details.bytesAvailable;
  }
}

/** Memory of the device, of the module or of the disk is short. */
export class OutOfMemoryError extends WickError {
  constructor(message: string, details: ErrorDetails = {}) {
    super("OUT_OF_MEMORY", message, details);
    this.name = "OutOfMemoryError";
  }
}

/** The call was given up, by its signal or because what it belongs to was closed. */
export class CancelledError extends WickError {
  constructor(message = "the call was cancelled", details: ErrorDetails = {}) {
    super("CANCELLED", message, details);
    this.name = "CancelledError";
  }
}

/** The GPU is gone and could not be brought back. */
export class DeviceLostError extends WickError {
  constructor(message: string, details: ErrorDetails = {}) {
    super("DEVICE_LOST", message, details);
    this.name = "DeviceLostError";
  }
}

/** The class that belongs to a code. */
export function makeError(code: ErrorCode, message: string, details: ErrorDetails = {}): WickError {
  switch (code) {
    case "OUT_OF_MEMORY": return new OutOfMemoryError(message, details);
    case "CANCELLED": return new CancelledError(message, details);
    case "DEVICE_LOST": return new DeviceLostError(message, details);
    default: return new WickError(code, message, details);
  }
}

export function codeOfStatus(status: number): ErrorCode {
  const codes = Object.keys(STATUS) as ErrorCode[];
  return codes.find((code) => STATUS[code] === status) ?? "INTERNAL";
}

export const statusOfCode = (code: ErrorCode): number => STATUS[code];

/** What was thrown, as a sentence. */
export const messageOf = (reason: unknown): string =>
  reason instanceof Error ? reason.message : String(reason);

/** As a WickError, whatever was thrown, of the class that belongs to its code. */
export function toWickError(reason: unknown): WickError {
  if (reason instanceof WickError) {
    return Object.getPrototypeOf(reason) === WickError.prototype
      ? makeError(reason.code, reason.message, reason) : reason;
  }
  if (reason instanceof Error && reason.name === "AbortError")
    return new CancelledError(undefined, { cause: reason });
  return new WickError("INTERNAL", messageOf(reason), { cause: reason });
}

/** What calls fail with once the engine is closed. */
export const closedError = (): WickError => new WickError("STATE", "the engine is closed");

/** The form in which an error passes between a worker and its page. */
export interface PlainError extends Omit<ErrorDetails, "cause"> {
  code: ErrorCode;
  message: string;
}

export function toPlain(reason: unknown): PlainError {
  const { code, message, bytesRequested, bytesAvailable } = toWickError(reason);
  return { code, message, bytesRequested, bytesAvailable };
}

export const fromPlain = (error: PlainError): WickError =>
  makeError(error.code, error.message, error);

/** What a value is, for messages. */
export function kindOf(value: unknown): string {
  if (typeof value === "object" && value !== null) return value.constructor?.name ?? "an object";
  const text = typeof value === "string" ? JSON.stringify(value)
    : String(value) + (typeof value === "bigint" ? "n" : "");
  return text.slice(0, 40);
}

/** Refuses what is not an array; what: of these. */
export function checkArray(value: unknown, what: string): void {
  if (!Array.isArray(value))
    throw new WickError("ARGUMENT", `${what} are given as an array, not as ${kindOf(value)}`);
}

/** Throws where the signal has been given. */
export function checkSignal(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw new CancelledError(undefined, { cause: signal.reason });
}
