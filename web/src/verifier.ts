/** The engine's side of the verification of kernels: each is checked when it is asked for. */
import { codeOfStatus } from "./errors.js";
import type { Module } from "./module.js";
import { Table } from "./table.js";
import type { KernelCheck, VerifyOptions } from "./types.js";

const PENDING = 1, CHECKED = 2, ALL_CHECKED = 0;

export class Verifier {
  readonly #module: Module;
  readonly #device: number;
  /** Pointers. */
  readonly #open = new Table<number>("verification");

  constructor(module: Module, device: number) {
    this.#module = module;
    this.#device = device;
  }

  close(): void {
    for (const [id] of this.#open.entries()) this.end(id);
  }

  start(options: VerifyOptions): number {
    return this.#open.add(
      this.#module.pointer("verify_start", this.#device, JSON.stringify(options)));
  }

  /** The next kernel's; undefined: that was all. */
  async next(id: number, signal: AbortSignal): Promise<KernelCheck | undefined> {
    const m = this.#module;
    const pointer = this.#open.get(id);
    let status = PENDING;
    const end = await m.finish(() => {
      status = m.call("verify_poll", pointer);
      if (m.call("verify_check", pointer) !== 0) return CHECKED;
      return status === PENDING ? PENDING : ALL_CHECKED;
    }, signal);
    if (end === CHECKED) return readCheck(m, pointer);
    this.#open.take(id);
    const result = m.call("verify_finish", pointer);
    if (result < 0 && codeOfStatus(result) !== "MISMATCH") throw m.error(result);
    return undefined;
  }

  end(id: number): void {
    const pointer = this.#open.take(id);
    if (pointer !== undefined) this.#module.call("verify_finish", pointer);
  }
}

function readCheck(module: Module, pointer: number): KernelCheck {
  const { status, ...check } =
    module.record<Omit<KernelCheck, "status"> & { status: number }>("verify_check", pointer);
  return { ...check, status: status === 0 ? "OK" : codeOfStatus(status) };
}
