/**
 * The engine's side of tensors and of kernels of the page's own: commands, which the page numbers
 * and gives in order (tensor.ts, kernel.ts), run on the module one after another. None of them
 * waits for the device; what comes back does.
 */
import type { CallContext } from "./engine.js";
import { toWickError, WickError } from "./errors.js";
import type { Module } from "./module.js";
import type { Command, Program } from "./tensor_commands.js";
import { Training } from "./training.js";
import { arrayOf, hasValue, isNarrow, NUMBER_DTYPES } from "./values.js";
import type { Dtype, KernelOptions, TensorInfo } from "./tensor_types.js";

/** Operations that the module queues without having to wait: `WK_QUEUE_DRAIN` and their parts. */
const MOST_QUEUED = 32;
const WORD = 4, DOUBLE = 8;

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
  readonly #training: Training;
  /** The first failure that no answer has reported yet, and those that were reported. */
  #failure: WickError | undefined;
  readonly #told = new WeakSet<WickError>();

  constructor(module: Module, device: number) {
    this.#module = module;
    this.#device = device;
    this.#names = module.record<Names>("names");
    this.#opCodes = new Map(this.#names.ops.map((name, code) => [name, code]));
    this.#training = new Training(module, device, {
      get: (id) => (id === 0 ? 0 : this.#get(id)),
      hold: (id, pointer) => void this.#held.set(id, { pointer }),
      dtypeCode: (dtype) => this.#dtypeCode(dtype),
      kernel: (id) => this.#kernel(id),
      putWords: (words) => this.#putWords(words),
      putDoubles: (values) => this.#putDoubles(values),
      putWorkgroups: (...given) => this.#putWorkgroups(...given),
      runProgram: (...given) => this.#runProgram(...given),
    });
  }

  /** Releases all. */
  async close(): Promise<void> {
    await this.#order;
    this.#training.close();
    this.#release([...this.#held.keys()]);
    for (const kernel of this.#kernels.values()) this.#module.call("kernel_release", kernel);
    this.#kernels.clear();
  }

  /** Failures stay with what the command would have made, and come with the next answer. */
  run(commands: Command[]): Promise<void> {
    return this.#inOrder(async () => {
      for (const command of commands) {
        try {
          await this.#prepare(command);
          this.#execute(command);
        } catch (reason) {
          const error = toWickError(reason);
          this.#fail(command, error);
          await this.#recover(error);
        }
      }
    });
  }

  /** Ends when the device has computed all that was given. */
  sync(signal: AbortSignal): Promise<void> {
    return this.#recovering(async () => {
      await this.#inOrder(() => this.#flush());
      await this.#module.finish(() => this.#module.checked("device_run", this.#device), signal);
      this.#tell();
    });
  }

  describe(id: number): Promise<TensorInfo> {
    return this.#inOrder(async () => {
      this.#tell();
      return this.#describe(this.#get(id)).info;
    });
  }

  /** Floats of 8 and 16 bits come as f32. */
  read(id: number, { signal }: Pick<CallContext, "signal">): Promise<Contents> {
    return this.#recovering(async () => {
      const { reading, size, info } = await this.#inOrder(() => this.#startReading(id));
      return { ...info, bytes: await this.#module.finishReading(reading, this.#device, size, signal) };
    });
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
    const kernel = this.#kernel(id);
    const pointers = tensors.map((tensor) => this.#get(tensor));
    const groups = m.alloc(3 * WORD);
    const at = m.put(uniform);
    const list = this.#putWords(pointers);
    try {
      this.#putWorkgroups(kernel, workgroups, groups);
      m.checked("kernel_run", kernel, this.#device, list, pointers.length, groups, at,
                uniform.length);
    } finally {
      for (const place of [groups, at, list]) m.release(place);
    }
  }

  #kernel(id: number): number {
    const kernel = this.#kernels.get(id);
    if (kernel === undefined) throw new WickError("STATE", "the kernel is released");
    return kernel;
  }

  #putWorkgroups(kernel: number, workgroups: number[] | number, at: number): void {
    if (typeof workgroups === "number")
      this.#module.checked("kernel_workgroups", kernel, this.#device, workgroups, at);
    else
      this.#module.memory.words(at, 3).set([1, 1, 1].map((one, i) => workgroups[i] ?? one));
  }

  // --- Optimizers ---

  optimizerStates(optimizer: number): Promise<string[]> {
    return this.#inOrder(async () => this.#training.stateNames(optimizer));
  }

  takeOptimizerStates(optimizer: number, outputs: number[]): Promise<void> {
    return this.#inOrder(async () => this.#training.takeStates(optimizer, outputs));
  }

  optimizerSteps(optimizer: number): Promise<number[]> {
    return this.#inOrder(async () => this.#training.steps(optimizer));
  }

  // --- Commands ---

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#order.then(work);
    this.#order = result.catch(() => undefined);
    return result;
  }

  /** What the module can wait for, it waits for here. */
  async #prepare({ kind }: Command): Promise<void> {
    if (kind === "data" || kind === "write" || kind === "grad") await this.#flush();
    else if (kind !== "seed" && kind !== "release") await this.#makeRoom();
  }

  #execute(command: Command): void {
    switch (command.kind) {
      case "op": return this.#makeOp(command);
      case "data": return this.#makeData(command);
      case "write": return this.#write(command);
      case "seed": return this.#seed(command);
      case "release": return this.#release(command.tensors);
      case "run": return this.#runKernel(command);
      default: return this.#training.run(command);
    }
  }

  /** Its tensors belong to who has begun it, as the module's scope has them. */
  #runProgram({ given, commands, results }: Program, pointers: number[]): number[] {
    given.forEach((id, i) => this.#held.set(id, { pointer: pointers[i]! }));
    try {
      for (const command of commands) this.#execute(command);
      return results.map((id) => (id === 0 ? 0 : this.#get(id)));
    } finally {
      const made = commands.flatMap((command) => command.kind === "op" ? command.outputs : []);
      for (const id of [...given, ...made]) this.#held.delete(id);
    }
  }

  #fail(command: Command, error: WickError): void {
    if (!this.#told.has(error)) this.#failure ??= error;
    const outputs = "outputs" in command ? command.outputs
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

  #makeOp({ name, inputs, dtype, numbers, outputs }: Extract<Command, { kind: "op" }>): void {
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

  #makeData({ output, dtype, shape, bytes }: Extract<Command, { kind: "data" }>): void {
    const m = this.#module;
    const extents = this.#putDoubles(shape);
    try {
      const pointer = m.pointer("tensor_make", this.#device, this.#dtypeCode(dtype), extents,
                                shape.length, m.put(bytes), bytes.length);
      this.#held.set(output, { pointer });
    } finally {
      m.release(extents);
    }
  }

  #seed({ seed, stream }: Extract<Command, { kind: "seed" }>): void {
    const words = [seed, stream].flatMap((value) => [value, value >> 32n])
      .map((value) => Number(value & 0xffffffffn));
    this.#module.call("device_set_seed", this.#device, ...words);
  }

  #write({ tensor, bytes, given }: Extract<Command, { kind: "write" }>): void {
    const m = this.#module;
    const pointer = this.#get(tensor), { dtype } = this.#describe(pointer).info;
    const wanted = arrayOf(dtype);
    if (given !== wanted)
      throw new WickError("DTYPE", `write: ${dtype} wants ${wanted}, not ${given}`);
    m.withBytes(bytes, (at, size) => m.checked("tensor_write", pointer, at, size));
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

  async #recovering<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (reason) {
      await this.#recover(toWickError(reason));
      throw reason;
    }
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
    if (code < 0)
      throw new WickError("DTYPE", `unknown dtype ${dtype}: numbers have one of ${NUMBER_DTYPES}`);
    return code;
  }

  #putWords(words: number[]): number {
    return this.#module.put(new Uint8Array(Uint32Array.from(words).buffer));
  }

  #putDoubles(values: number[]): number {
    return this.#module.put(new Uint8Array(Float64Array.from(values).buffer));
  }
}
