/**
 * The page's side of tensor operations: commands are numbered here, collected until the end of the
 * page's task, and posted in their order. Scopes are kept here, too.
 */
import { kindOf, WickError } from "./errors.js";
import type { Leaks } from "./leaks.js";
import type { CallArguments, CallName, CallResult } from "./messages.js";
import type { CallOptions, Port } from "./port.js";
import { Tensor } from "./tensor.js";
import type { Command } from "./tensors.js";
import type { Dtype } from "./types.js";

/** An operand that may be left out. */
export type Operand = Tensor | undefined;

/** Operations of which an operand may be left out. */
const WITH_OPTIONAL = new Set(
  ["rms_norm", "layer_norm", "linear", "linear_experts", "rope", "attention"]);

export class Commands {
  readonly #port: Port;
  readonly #leaks: Leaks | undefined;
  readonly #scopes: Set<Tensor>[] = [];
  #waiting: Command[] = [];
  #transfer: Transferable[] = [];
  #last = 0;

  constructor(port: Port, leaks?: Leaks) {
    this.#port = port;
    this.#leaks = leaks;
  }

  /** For what the page numbers. */
  newId(): number {
    return ++this.#last;
  }

  /** An operation with one result. */
  op(name: string, operands: Operand[], numbers: number[] = [], dtype?: Dtype): Tensor {
    return this.ops(name, operands, numbers, 1, dtype)[0]!;
  }

  /** An operation with nResults results; 0: it writes to its first operand. */
  ops(name: string, operands: Operand[], numbers: number[], nResults: number,
      dtype?: Dtype): Tensor[] {
    const inputs = operands.map((operand) => this.#numberOf(operand, name));
    for (const value of numbers)
      if (typeof value !== "number")
        throw new WickError("ARGUMENT", `${name}: a number is wanted, not ${kindOf(value)}`);
    const outputs = Array.from({ length: nResults }, () => this.newId());
    this.give({ kind: "op", name, inputs, numbers, outputs, ...(dtype && { dtype }) });
    return outputs.map((id) => this.#adopt(id, name));
  }

  #numberOf(operand: Operand, name: string): number {
    if (operand === undefined && WITH_OPTIONAL.has(name)) return 0;
    if (operand instanceof Tensor) return operand.use(this);
    throw new WickError("ARGUMENT", `${name}: an operand is no tensor: ${kindOf(operand)}`);
  }

  /** A tensor whose bytes are handed over. */
  data(command: Omit<Extract<Command, { kind: "data" }>, "kind" | "output">): Tensor {
    const output = this.newId();
    this.give({ kind: "data", output, ...command }, [command.bytes.buffer as ArrayBuffer]);
    return this.#adopt(output, "tensor");
  }

  give(command: Command, transfer: Transferable[] = []): void {
    if (this.#waiting.length === 0) queueMicrotask(() => this.#post());
    this.#waiting.push(command);
    this.#transfer.push(...transfer);
  }

  /** A call that is run after the commands before it. */
  call<K extends CallName>(name: K, given: CallArguments<K>,
                           options?: CallOptions): Promise<CallResult<K>> {
    this.#post();
    return this.#port.call(name, given, options);
  }

  release(tensor: Tensor, id: number): void {
    this.leaveScope(tensor);
    this.#leaks?.close(tensor);
    this.give({ kind: "release", tensors: [id] });
  }

  leaveScope(tensor: Tensor): void {
    for (const scope of this.#scopes) scope.delete(tensor);
  }

  /** Disposes of the tensors that body makes, except those in what it returns. */
  async scope<T>(body: () => T | Promise<T>): Promise<T> {
    const scope = new Set<Tensor>();
    this.#scopes.push(scope);
    try {
      const result = await body();
      const outer = this.#scopes[this.#scopes.indexOf(scope) - 1];
      for (const tensor of tensorsIn(result)) if (scope.delete(tensor)) outer?.add(tensor);
      if (this.#scopes.at(-1) !== scope)
        throw new WickError("STATE",
          "a scope ended before one that was begun inside it: await the inner one first");
      return result;
    } finally {
      this.#scopes.splice(this.#scopes.indexOf(scope), 1);
      for (const tensor of [...scope]) tensor.dispose();
    }
  }

  #adopt(id: number, what: string): Tensor {
    const tensor = new Tensor(this, id);
    this.#scopes.at(-1)?.add(tensor);
    this.#leaks?.open(tensor, `tensor (${what})`);
    return tensor;
  }

  #post(): void {
    if (this.#waiting.length === 0) return;
    const commands = this.#waiting, transfer = this.#transfer;
    this.#waiting = [];
    this.#transfer = [];
    // Commands fail with their results. Where the engine is gone, every other call says so.
    this.#port.call("tensorCommands", [commands], { transfer }).catch(() => undefined);
  }
}

/** Those in a value, in its arrays and plain objects. */
function tensorsIn(value: unknown): Tensor[] {
  if (value instanceof Tensor) return [value];
  if (Array.isArray(value)) return value.flatMap(tensorsIn);
  const isPlain = typeof value === "object" && value !== null
    && Object.getPrototypeOf(value) === Object.prototype;
  return isPlain ? Object.values(value).flatMap(tensorsIn) : [];
}
