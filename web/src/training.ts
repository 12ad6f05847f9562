/** The engine's side of gradients, optimizers and operations of the page's own. */
import { toWickError, WickError } from "./errors.js";
import type { Module } from "./module.js";
import { Table } from "./table.js";
import type { Program, TrainingCommand } from "./tensor_commands.js";
import type { Dtype } from "./tensor_types.js";

const WORD = 4;

/** What it needs of tensors. */
export interface TensorTable {
  /** The pointer of a tensor that is there; 0 for 0. */
  get(id: number): number;
  hold(id: number, pointer: number): void;
  dtypeCode(dtype: Dtype): number;
  kernel(id: number): number;
  putWords(words: number[]): number;
  putDoubles(values: number[]): number;
  /** Workgroups in x, y and z, or those for a number of threads, written to a place. */
  putWorkgroups(kernel: number, workgroups: number[] | number, at: number): void;
  /** Runs a program with these pointers, and returns those of its results. */
  runProgram(program: Program, given: number[]): number[];
}

interface Operation {
  pointer: number;
  kernel: number;
  nInputs: number;
  program: Program | undefined;
}

export class Training {
  readonly #module: Module;
  readonly #device: number;
  readonly #tensors: TensorTable;
  readonly #tapes = new Map<number, number>();
  readonly #optimizers = new Map<number, { pointer: number; nParams: number }>();
  readonly #operations = new Map<number, Operation>();
  /** By the numbers that the module knows operations by. */
  readonly #byNumber = new Table<Operation>("operation");
  /** Of a gradient that the page has given. */
  #failure: WickError | undefined;

  constructor(module: Module, device: number, tensors: TensorTable) {
    this.#module = module;
    this.#device = device;
    this.#tensors = tensors;
    module.gradient = (...given) => this.#gradient(...given);
  }

  close(): void {
    for (const tape of this.#tapes.values()) this.#module.call("tape_end", tape);
    for (const { pointer } of this.#optimizers.values())
      this.#module.call("optimizer_release", pointer);
    for (const { pointer } of this.#operations.values())
      this.#module.call("operation_release", pointer);
    for (const map of [this.#tapes, this.#optimizers, this.#operations]) map.clear();
  }

  run(command: TrainingCommand): void {
    const m = this.#module;
    switch (command.kind) {
      case "tape": return this.#changeTape(command.tape, command.does);
      case "watch":
        return void m.checked("tape_watch", this.#find(this.#tapes, command.tape, "tape"),
                              this.#tensors.get(command.tensor));
      case "grad": return this.#grad(command);
      case "optimizer": return this.#makeOptimizer(command);
      case "step": return this.#step(command);
      case "setSteps": {
        const { pointer } = this.#find(this.#optimizers, command.optimizer, "optimizer");
        return command.steps.forEach((n, i) => m.call("optimizer_set_steps", pointer, i, n));
      }
      case "releaseOptimizer": {
        const optimizer = this.#optimizers.get(command.optimizer);
        this.#optimizers.delete(command.optimizer);
        if (optimizer) m.call("optimizer_release", optimizer.pointer);
        return;
      }
      case "operation": return this.#makeOperation(command);
      case "operate": return this.#operate(command);
      case "releaseOperation": {
        const operation = this.#operations.get(command.operation);
        this.#operations.delete(command.operation);
        if (!operation) return;
        operation.program = undefined;
        m.call("operation_release", operation.pointer);
      }
    }
  }

  #find<T>(map: Map<number, T>, id: number, what: string): T {
    const found = map.get(id);
    if (found === undefined) throw new WickError("STATE", `the ${what} could not be made`);
    return found;
  }

  // --- Tapes ---

  #changeTape(id: number, does: "begin" | "end" | "pause" | "resume"): void {
    const m = this.#module;
    if (does === "begin") return void this.#tapes.set(id, m.pointer("tape_begin", this.#device));
    const tape = this.#tapes.get(id);
    if (tape === undefined) return; // that it could not begin was said
    if (does !== "end") return void m.call("tape_no_grad", tape, does === "pause" ? 1 : 0);
    this.#tapes.delete(id);
    m.call("tape_end", tape);
  }

  #grad({ tape: id, inputs, outputs }: Extract<TrainingCommand, { kind: "grad" }>): void {
    const m = this.#module;
    const tape = this.#find(this.#tapes, id, "tape");
    const n = outputs.length;
    const list = this.#tensors.putWords(
      [...inputs.map((input) => this.#tensors.get(input)), ...new Array<number>(n).fill(0)]);
    this.#failure = undefined;
    try {
      m.checked("tape_grad", tape, list, n); // of a failed operation it has the sentence
      const made = [...m.memory.words(list + (2 + n) * WORD, n)];
      if (this.#failure) {
        for (const pointer of made) if (pointer !== 0) m.call("tensor_release", pointer);
        throw this.#failure;
      }
      outputs.forEach((output, i) => this.#tensors.hold(output, made[i]!));
    } finally {
      m.release(list);
    }
  }

  /** Called by the module. What it throws would leave the module in the middle of something. */
  #gradient(number: number, inputs: number, output: number, gradOfOutput: number,
            grads: number): void {
    const words = this.#module.memory;
    try {
      const { program, nInputs } = this.#byNumber.get(number);
      if (!program) throw new WickError("STATE", "an operation on the way is disposed");
      const nGiven = program.given.length - 2;
      const made = this.#tensors.runProgram(
        program, [...words.words(inputs, nInputs)].slice(0, nGiven).concat(output, gradOfOutput));
      words.words(grads, nGiven).set(made);
    } catch (reason) {
      this.#failure ??= toWickError(reason);
    }
  }

  // --- Optimizers ---

  #makeOptimizer({ optimizer, params, options }:
                 Extract<TrainingCommand, { kind: "optimizer" }>): void {
    const m = this.#module;
    const list = this.#tensors.putWords(params.map((id) => this.#tensors.get(id)));
    try {
      const pointer = m.pointer("optimizer_make", this.#device, JSON.stringify(options), list,
                                params.length);
      this.#optimizers.set(optimizer, { pointer, nParams: params.length });
      const names = ["__metadata__", ...options.names ?? [], ...this.stateNames(optimizer)];
      if (new Set(names).size === names.length) return;
      this.run({ kind: "releaseOptimizer", optimizer });
      throw new WickError("VALUE", "optimizer: two parameters or states have one name");
    } finally {
      m.release(list);
    }
  }

  #step({ optimizer, gradients, rate }: Extract<TrainingCommand, { kind: "step" }>): void {
    const m = this.#module;
    const { pointer, nParams } = this.#find(this.#optimizers, optimizer, "optimizer");
    if (gradients.length !== nParams)
      throw new WickError("ARGUMENT", `step: ${gradients.length} gradients for ${nParams} parameters`);
    const list = this.#tensors.putWords(gradients.map((id) => this.#tensors.get(id)));
    try {
      m.checked("optimizer_step", pointer, this.#device, list, rate);
    } finally {
      m.release(list);
    }
  }

  stateNames(optimizer: number): string[] {
    const { pointer } = this.#find(this.#optimizers, optimizer, "optimizer");
    return this.#module.record<{ names: string[] }>("optimizer_states", pointer).names;
  }

  takeStates(optimizer: number, outputs: number[]): void {
    const { pointer } = this.#find(this.#optimizers, optimizer, "optimizer");
    outputs.forEach((output, i) =>
      this.#tensors.hold(output, this.#module.pointer("optimizer_state", pointer, i)));
  }

  steps(optimizer: number): number[] {
    const { pointer, nParams } = this.#find(this.#optimizers, optimizer, "optimizer");
    return Array.from({ length: nParams }, (_, i) =>
      this.#module.call("optimizer_steps", pointer, i));
  }

  // --- Operations of the page's own ---

  #makeOperation({ operation: id, name, kernel: kernelId, nInputs, nOutputs, gradient }:
                 Extract<TrainingCommand, { kind: "operation" }>): void {
    const m = this.#module;
    const kernel = kernelId === 0 ? 0 : this.#tensors.kernel(kernelId);
    const made: Operation = { pointer: 0, kernel, nInputs, program: gradient };
    const number = this.#byNumber.add(made);
    made.pointer = m.pointer("operation_make", this.#device, name, kernel, number, nInputs,
                             nOutputs, gradient ? 1 : 0);
    this.#operations.set(id, made);
  }

  #operate({ operation: id, inputs, outputs, infos, workgroups, uniform }:
           Extract<TrainingCommand, { kind: "operate" }>): void {
    const m = this.#module;
    const { pointer, kernel } = this.#find(this.#operations, id, "operation");
    const words = [...inputs.map((input) => this.#tensors.get(input)),
                   ...new Array<number>(outputs.length).fill(0)];
    const numbers = infos.flatMap(({ dtype, shape }) =>
      [this.#tensors.dtypeCode(dtype), shape.length, ...shape]);
    const groups = m.alloc(3 * WORD);
    const list = this.#tensors.putWords(words), shapes = this.#tensors.putDoubles(numbers);
    const at = m.put(uniform);
    try {
      if (kernel !== 0) this.#tensors.putWorkgroups(kernel, workgroups, groups);
      m.checked("operation_run", pointer, this.#device, list, inputs.length, shapes, groups, at,
                uniform.length);
      const made = m.memory.words(list + inputs.length * WORD, outputs.length);
      outputs.forEach((output, i) => this.#tensors.hold(output, made[i]!));
    } finally {
      for (const place of [groups, list, shapes, at]) m.release(place);
    }
  }
}
