/**
 * The engine's side of tensors and of kernels of the page's own: commands, which the page numbers
 * and gives in order (tensor.ts, kernel.ts), run on the module one after another. None of them
 * waits for the device; what comes back does.
 */
import type { CallContext } from "./engine.js";
import { toWickError, WickError } from "./errors.js";
import type { Module } from "./module.js";
import type { Dtype, KernelOptions, TensorInfo } from "./types.js";
import { hasValue, isNarrow } from "./values.js";

/** Operations that the module queues without having to wait: `WK_QUEUE_DRAIN` and their parts. */
const MOST_QUEUED = 32;
const WORD = 4, DOUBLE = 8;

/** What is asked of tensors. Numbers of tensors are the page's; 0: none is given. */
export type Command =
  | { kind: "op"; name: string; inputs: number[]; dtype?: Dtype; numbers: number[];
      outputs: number[] }
  | { kind: "data"; output: number; dtype: Dtype; shape: number[]; bytes: Uint8Array }
  | { kind: "write"; tensor: number; bytes: Uint8Array }
  | { kind: "run"; kernel: number; tensors: number[]; workgroups: number[] | number;
      uniform: Uint8Array }
  | { kind: "seed"; seed: number }
  | { kind: "release"; tensors: number[] };

/** The contents of a tensor: dense, row-major. */
export interface Contents extends TensorInfo {
  bytes: Uint8Array;
}

/** A tensor of the module, or why there is none. */
type Held = { pointer: number } | { error: WickError };

/** Names in the order of the module's numbers. */
interface Names {
  ops: string[];
  dtypes: Dtype[];
}

export class Tensors {
  readonly #module: Module;
  readonly #device: number;
  readonly #held = new Map<number, Held>();
  readonly #kernels = new Map<number, number>();
  readonly #names: Names;
  readonly #opCodes: Map<string, number>;
  /** Ends when all that was given so far has been given to the module. */
  #order: Promise<unknown> = Promise.resolve();
  #queued = 0;
  /** The first failure that no answer has reported yet, and those that were reported. */
  #failure: WickError | undefined;
  readonly #told = new WeakSet<WickError>();

  constructor(module: Module, device: number) {
    this.#module = module;
    this.#device = device;
    this.#names = module.record<Names>("names");
    this.#opCodes = new Map(this.#names.ops.map((name, code) => [name, code]));
  }

  /** Releases all. */
  async close(): Promise<void> {
    await this.#order;
    this.#release([...this.#held.keys()]);
    for (const kernel of this.#kernels.values()) this.#module.call("kernel_release", kernel);
    this.#kernels.clear();
  }

  /** Failures stay with what the command would have made, and come with the next answer. */
  run(commands: Command[]): Promise<void> {
    return this.#inOrder(async () => {
      for (const command of commands) {
        try {
          await this.#execute(command);
        } catch (reason) {
          const error = toWickError(reason);
          this.#fail(command, error);
          await this.#recover(error);
        }
      }
    });
  }

  /** Ends when the device has computed all that was given. */
  async sync(signal: AbortSignal): Promise<void> {
    await this.#inOrder(() => this.#flush());
    await this.#module.finish(() => this.#module.checked("device_run", this.#device), signal);
    this.#tell();
  }

  describe(id: number): Promise<TensorInfo> {
    return this.#inOrder(async () => {
      this.#tell();
      return this.#describe(this.#get(id)).info;
    });
  }

  /** Floats of 8 and 16 bits come as f32. */
  async read(id: number, { signal }: Pick<CallContext, "signal">): Promise<Contents> {
    try {
      return await this.#read(id, signal);
    } catch (reason) {
      await this.#recover(toWickError(reason));
      throw reason;
    }
  }

  async #read(id: number, signal: AbortSignal): Promise<Contents> {
    const { reading, size, info } = await this.#inOrder(() => this.#startReading(id));
    const m = this.#module;
    let at = 0;
    let isFinished = false;
    try {
      at = m.alloc(size);
      await m.finish(() => m.checked("read_poll", reading, this.#device), signal);
      isFinished = true;
      m.checked("read_finish", reading, this.#device, at, size);
      return { ...info, bytes: m.memory.bytes(at, size).slice() };
    } finally {
      if (!isFinished) m.call("read_finish", reading, this.#device, 0, 0);
      if (at !== 0) m.release(at);
    }
  }

  async #startReading(id: number) {
    const m = this.#module;
    await this.#flush();
    this.#tell();
    const tensor = this.#get(id);
    const { info } = this.#describe(tensor);
    const isCast = isNarrow(info.dtype);
    const [source] = isCast
      ? this.#operate("cast", [tensor], [this.#dtypeCode("f32")], 1) as [number] : [tensor];
    try {
      const reading = m.pointer("read_start", source);
      return { reading, size: this.#describe(source).size, info };
    } finally {
      if (isCast) m.call("tensor_release", source);
    }
  }

  // --- Kernels ---

  async makeKernel(id: number, options: KernelOptions, signal: AbortSignal): Promise<void> {
    const m = this.#module;
    const kernel = m.pointer("kernel_make", this.#device, JSON.stringify(options));
    try {
      await m.finish(() => m.checked("kernel_poll", kernel), signal);
    } catch (reason) {
      m.call("kernel_release", kernel);
      throw reason;
    }
    this.#kernels.set(id, kernel);
  }

  /** Runs that were given before still run. */
  releaseKernel(id: number): Promise<void> {
    return this.#inOrder(async () => {
      const kernel = this.#kernels.get(id);
      this.#kernels.delete(id);
      if (kernel !== undefined) this.#module.call("kernel_release", kernel);
    });
  }

  #runKernel(command: Extract<Command, { kind: "run" }>): void {
    const { kernel: id, tensors, workgroups, uniform } = command;
    const m = this.#module;
    const kernel = this.#kernels.get(id);
    if (kernel === undefined) throw new WickError("STATE", "the kernel is released");
    const pointers = tensors.map((tensor) => this.#get(tensor));
    const groups = m.alloc(3 * WORD);
    const at = m.put(uniform);
    const list = this.#putWords(pointers);
    try {
      if (typeof workgroups === "number")
        m.checked("kernel_workgroups", kernel, this.#device, workgroups, groups);
      else
        m.memory.words(groups, 3).set([1, 1, 1].map((one, i) => workgroups[i] ?? one));
      m.checked("kernel_run", kernel, this.#device, list, pointers.length, groups, at,
                uniform.length);
    } finally {
      for (const place of [groups, at, list]) m.release(place);
    }
  }

  // --- Commands ---

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#order.then(work);
    this.#order = result.catch(() => undefined);
    return result;
  }

  async #execute(command: Command): Promise<void> {
    switch (command.kind) {
      case "op": return this.#makeOp(command);
      case "data": return this.#makeData(command);
      case "write": return this.#write(command);
      case "seed": return void this.#module.call("device_set_seed", this.#device, command.seed);
      case "release": return this.#release(command.tensors);
      case "run":
        await this.#makeRoom();
        this.#runKernel(command);
    }
  }

  #fail(command: Command, error: WickError): void {
    if (!this.#told.has(error)) this.#failure ??= error;
    const outputs = command.kind === "op" ? command.outputs
      : command.kind === "data" ? [command.output] : [];
    for (const id of outputs) this.#held.set(id, { error });
  }

  /** Throws what has failed since the last answer. */
  #tell(): void {
    const failure = this.#failure;
    this.#failure = undefined;
    if (!failure) return;
    this.#told.add(failure);
    throw failure;
  }

  async #makeOp({ name, inputs, dtype, numbers, outputs }: Extract<Command, { kind: "op" }>) {
    await this.#makeRoom();
    const given = dtype ? [this.#dtypeCode(dtype), ...numbers] : numbers;
    const pointers = inputs.map((id) => (id === 0 ? 0 : this.#get(id)));
    const made = name === "scalar" ? [this.#makeScalar(pointers[0]!, numbers[0]!)]
      : this.#operate(name, pointers, given, outputs.length);
    outputs.forEach((id, i) => this.#held.set(id, { pointer: made[i]! }));
  }

  /** A number as a tensor of another one's dtype. */
  #makeScalar(like: number, value: number): number {
    const { dtype } = this.#describe(like).info;
    if (!hasValue(dtype, value))
      throw new WickError("VALUE", `${value} is no number of ${dtype}: cast the tensor first`);
    return this.#operate("full", [], [this.#dtypeCode(dtype), value], 1)[0]!;
  }

  async #makeData({ output, dtype, shape, bytes }: Extract<Command, { kind: "data" }>) {
    const m = this.#module;
    await this.#flush();
    const extents = this.#putDoubles(shape);
    try {
      const pointer = m.pointer("tensor_make", this.#device, this.#dtypeCode(dtype), extents,
                                shape.length, m.put(bytes), bytes.length);
      this.#held.set(output, { pointer });
    } finally {
      m.release(extents);
    }
  }

  async #write({ tensor, bytes }: Extract<Command, { kind: "write" }>) {
    const m = this.#module;
    await this.#flush();
    const pointer = this.#get(tensor);
    const at = m.put(bytes);
    try {
      m.checked("tensor_write", pointer, at, bytes.length);
    } finally {
      m.release(at);
    }
  }

  #release(ids: number[]): void {
    for (const id of ids) {
      const held = this.#held.get(id);
      this.#held.delete(id);
      if (held && "pointer" in held) this.#module.call("tensor_release", held.pointer);
    }
  }

  /** Submits what is queued; later operations need not wait for that. */
  async #flush(): Promise<void> {
    await this.#module.finish(() => this.#module.checked("device_flush", this.#device));
    this.#queued = 0;
  }

  /** Opens a lost device again before the error is reported: tensors made after that are on the
   * new device. */
  async #recover({ code }: WickError): Promise<void> {
    if (code !== "DEVICE_LOST") return;
    const m = this.#module;
    await m.finish(() => m.call("device_recover", this.#device)).catch(() => undefined);
  }

  async #makeRoom(): Promise<void> {
    if (++this.#queued >= MOST_QUEUED) await this.#flush();
  }

  #get(id: number): number {
    const held = this.#held.get(id);
    if (held === undefined) throw new WickError("STATE", "the tensor is disposed");
    if ("error" in held) throw held.error;
    return held.pointer;
  }

  /** The results of an operation, as pointers. */
  #operate(name: string, inputs: number[], numbers: number[], nResults: number): number[] {
    const m = this.#module;
    const code = this.#opCodes.get(name);
    if (code === undefined) throw new WickError("UNSUPPORTED", `there is no operation ${name}`);
    // The longest lists that the module looks at, left out ones being 0.
    const room = Math.max(inputs.length, nResults, 8);
    const list = this.#putWords([...inputs, ...new Array<number>(room - inputs.length).fill(0)]);
    const values = this.#putDoubles(numbers);
    try {
      m.checked("op", this.#device, code, list, inputs.length, nResults, values, numbers.length);
      return [...m.memory.words(list, nResults)];
    } finally {
      m.release(list);
      m.release(values);
    }
  }

  #describe(tensor: number): { info: TensorInfo; size: number } {
    const m = this.#module;
    const at = m.alloc(DOUBLE * 8);
    const size = m.call("tensor_describe", tensor, at) >>> 0;
    const [dtype, rank, ...extents] = m.memory.doubles(at, 8);
    m.release(at);
    const info = { dtype: this.#names.dtypes[dtype!]!, shape: extents.slice(0, rank) };
    return { info, size };
  }

  #dtypeCode(dtype: Dtype): number {
    const code = this.#names.dtypes.indexOf(dtype);
    if (code < 0) throw new WickError("DTYPE", `there is no dtype ${dtype}`);
    return code;
  }

  #putWords(words: number[]): number {
    return this.#module.put(new Uint8Array(Uint32Array.from(words).buffer));
  }

  #putDoubles(values: number[]): number {
    return this.#module.put(new Uint8Array(Float64Array.from(values).buffer));
  }
}
