/** What the page asks of tensors, kernels and training, in messages that the engine runs in order. */
import type { Dtype, OptimizerOptions, TensorInfo } from "./tensor_types.js";

/** Numbers of tensors, kernels and all else are the page's; 0: none is given. */
export type Command =
  | { kind: "op"; name: string; inputs: number[]; dtype?: Dtype; numbers: number[];
      outputs: number[] }
  | { kind: "data"; output: number; dtype: Dtype; shape: number[]; bytes: Uint8Array }
  /** given: the kind of array that the bytes are of. */
  | { kind: "write"; tensor: number; bytes: Uint8Array; given: string }
  | { kind: "run"; kernel: number; tensors: number[]; workgroups: number[] | number;
      uniform: Uint8Array }
  | { kind: "seed"; seed: bigint; stream: bigint }
  | { kind: "release"; tensors: number[] }
  | TrainingCommand;

export type TrainingCommand =
  | { kind: "tape"; tape: number; does: "begin" | "end" | "pause" | "resume" }
  | { kind: "watch"; tape: number; tensor: number }
  /** inputs: y, its gradient, and what gradients are wanted of: as many as outputs. */
  | { kind: "grad"; tape: number; inputs: number[]; outputs: number[] }
  | { kind: "optimizer"; optimizer: number; params: number[]; options: OptimizerOptions }
  | { kind: "step"; optimizer: number; gradients: number[]; rate: number }
  | { kind: "setSteps"; optimizer: number; steps: number[] }
  | { kind: "releaseOptimizer"; optimizer: number }
  | { kind: "operation"; operation: number; name: string; kernel: number; nInputs: number;
      nOutputs: number; gradient: Program | undefined }
  /** Of a function in JavaScript the last inputs are what it has computed. */
  | { kind: "operate"; operation: number; inputs: number[]; outputs: number[];
      infos: TensorInfo[]; workgroups: number[] | number; uniform: Uint8Array }
  | { kind: "releaseOperation"; operation: number };

/** Commands of kinds op and run, on tensors that are given when it runs; 0 among the results: none. */
export interface Program {
  given: number[];
  commands: Command[];
  results: number[];
}
