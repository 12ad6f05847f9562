/**
 * The page's side of tensor operations: commands are numbered here, collected until the end of the
 * page's task, and posted in their order. Scopes are kept here, too.
 */
import { kindOf, WickError } from "./errors.js";
import type { Leaks } from "./leaks.js";
import type { CallArguments, CallName, CallResult } from "./messages.js";
import type { CallOptions, Port } from "./port.js";
import { Tensor } from "./tensor.js";
import { TensorBase } from "./tensor_base.js";
import type { Command, Program } from "./tensor_commands.js";
import type { Dtype } from "./tensor_types.js";

/** Of an operand that is left out; what callers forget is not. */
export const NONE: unique symbol = Symbol("none");
export type Operand = TensorBase | typeof NONE;

export class Commands {
  readonly #port: Port;
  readonly #leaks: Leaks | undefined;
  readonly #scopes: Set<Tensor>[] = [];
  #waiting: Command[] = [];
  #transfer: Transferable[] = [];
  /** What is given goes there, and is not run. */
  #program: Command[] | undefined;
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
    const inputs = operands.map((operand) => this.numberOf(operand, name));
    for (const value of numbers) checkNumber(value, name);
    const outputs = this.newIds(nResults);
    this.give({ kind: "op", name, inputs, numbers, outputs, ...(dtype && { dtype }) });
    return this.adopt(outputs, name);
  }

  /** 0: none is given. */
  numberOf(operand: Operand, name: string): number {
    if (operand === NONE) return 0;
    if (operand instanceof TensorBase) return operand.use(this);
    throw new WickError("ARGUMENT", `${name}: an operand is no tensor: ${kindOf(operand)}`);
  }

  /** New tensors that a command of another kind has as its outputs. */
  adopt(outputs: number[], what: string): Tensor[] {
    return outputs.map((id) => this.#adopt(id, what));
  }

  newIds(n: number): number[] {
    return Array.from({ length: n }, () => this.newId());
  }

  /** The commands that body gives, of nGiven tensors that stand for those of a later run. */
  program(nGiven: number, body: (given: Tensor[]) => (Tensor | undefined)[], what: string): Program {
    const commands: Command[] = this.#program = [];
    try {
      const given = this.newIds(nGiven);
      const results = body(given.map((id) => new Tensor(this, id)));
      return { given, commands, results: results.map((y) => this.numberOf(y ?? NONE, what)) };
    } finally {
      this.#program = undefined;
    }
  }

  /** A tensor whose bytes are handed over. */
  data(command: Omit<Extract<Command, { kind: "data" }>, "kind" | "output">): Tensor {
    const output = this.newId();
    this.give({ kind: "data", output, ...command }, [command.bytes.buffer as ArrayBuffer]);
    return this.#adopt(output, "tensor");
  }

  give(command: Command, transfer: Transferable[] = []): void {
    if (this.#program) {
      if (command.kind === "op" || command.kind === "run") this.#program.push(command);
      else if (command.kind !== "release")
        throw new WickError("UNSUPPORTED",
          "a gradient is made of operations and kernels alone: make other tensors before it");
      return;
    }
    if (this.#waiting.length === 0) queueMicrotask(() => this.#post());
    this.#waiting.push(command);
    this.#transfer.push(...transfer);
  }

  /** A call that is run after the commands before it. */
  call<K extends CallName>(name: K, given: CallArguments<K>,
                           options?: CallOptions): Promise<CallResult<K>> {
    if (this.#program)
      return Promise.reject(new WickError("STATE", "a gradient is made before it is computed: "
        + "nothing in it can wait for a tensor"));
    this.#post();
    return this.#port.call(name, given, options);
  }

  /** Reports what was not ended, where the engine was opened for that. */
  get leaks(): Leaks | undefined {
    return this.#leaks;
  }

  release(tensor: TensorBase, id: number): void {
    this.leaveScope(tensor);
    this.#leaks?.close(tensor);
    this.give({ kind: "release", tensors: [id] });
  }

  leaveScope(tensor: TensorBase): void {
    for (const scope of this.#scopes) scope.delete(tensor as Tensor);
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
    if (this.#program) return tensor;
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

/** Throws where it is no number: of a text the module would take the address. */
export function checkNumber(value: unknown, name: string): void {
  if (typeof value !== "number")
    throw new WickError("ARGUMENT", `${name}: a number is wanted, not ${kindOf(value)}`);
}

/** Those in a value, in its arrays and plain objects. */
function tensorsIn(value: unknown): Tensor[] {
  if (value instanceof Tensor) return [value];
  if (Array.isArray(value)) return value.flatMap(tensorsIn);
  const isPlain = typeof value === "object" && value !== null
    && Object.getPrototypeOf(value) === Object.prototype;
  return isPlain ? Object.values(value).flatMap(tensorsIn) : [];
}
