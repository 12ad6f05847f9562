/** Types of tensors, and the options of operations on them and of training with them. */
import type { Tensor } from "./tensor.js";

/** Types of elements; f64 and the integers of 64 bits are computed by the CPU. */
export type ScalarDtype =
  "f32" | "f16" | "bf16" | "f64" | "i64" | "i32" | "i16" | "i8" | "u32" | "u8" | "bool";

/** Those of GGML files: of weights alone. */
export type BlockDtype =
  | "q4_0" | "q4_1" | "q5_0" | "q5_1" | "q8_0" | "q8_1" | "q2_k" | "q3_k" | "q4_k" | "q5_k" | "q6_k"
  | "q8_k" | "iq2_xxs" | "iq2_xs" | "iq3_xxs" | "iq1_s" | "iq4_nl" | "iq3_s" | "iq2_s" | "iq4_xs"
  | "iq1_m" | "tq1_0" | "tq2_0" | "mxfp4" | "nvfp4" | "q1_0" | "q2_0";

/** 8-bit floats, for storage: copied, shown by views and cast, and nothing else takes them. */
export type StoredDtype = "f8_e4m3" | "f8_e5m2";

export type Dtype = ScalarDtype | BlockDtype | StoredDtype;

export interface TensorInfo {
  dtype: Dtype;
  shape: number[];
}

/**
 * What a tensor is read as: floats of 8 and 16 bits as Float32Array; u8, bool and blocks as
 * Uint8Array.
 */
export type TensorValues =
  | Float32Array | Float64Array | BigInt64Array | Int32Array | Int16Array | Int8Array | Uint32Array
  | Uint8Array;

/**
 * What a tensor is made of; Uint16Array: the bits of f16 or bf16, Uint8Array: those of 8-bit
 * floats, too.
 */
export type TensorData = TensorValues | Uint16Array | NestedNumbers;

/** Numbers in arrays of arrays, whose lengths are the shape. */
export type NestedNumbers = number | bigint | boolean | NestedNumbers[];

/** A kernel in WGSL, see `wick/kernel.h`. */
export interface KernelOptions {
  /** WGSL without enable lines. */
  source: string;
  /** Default: `main`. */
  entry?: string;
  /** In messages; default: the entry's name. */
  label?: string;
  /** Threads of a workgroup, in the source WORKGROUP_X, _Y and _Z; default: 64, 1, 1. */
  workgroup?: number[];
  /** Tensor i is `@group(0) @binding(i)`; the uniform comes after them. */
  buffers: ("read" | "read_write")[];
  /** As WGSL lays the struct out, padding included; at most 512. Default: no uniform. */
  uniformBytes?: number;
  /** What the source uses. */
  f16?: boolean;
  subgroups?: boolean;
  dot4?: boolean;
}

/** What becomes of an element that a source meets, see `wick_scatter_fn`. */
export type ScatterMode = "set" | "add" | "mul" | "max" | "min";

/** What lies around a tensor, see `wick_pad_mode`. */
export type PadMode = "constant" | "reflect" | "replicate" | "circular";

/** Of two dims, one number for both. */
export interface WindowOptions {
  /** Zeros around; default: 0. */
  padding?: number | number[];
  /** Default: 1, as of dilation. */
  stride?: number | number[];
  dilation?: number | number[];
}

/** Rotary embedding, see `wick_rope`. */
export interface RopeOptions {
  positions?: Tensor;
  /** Default: all of the last dim. */
  rotaryDim?: number;
  /** Default: 10000. */
  theta?: number;
  /** Positions are divided by it; default: 1. */
  scaleFactor?: number;
  /** Position of the first row, without `positions`. */
  offset?: number;
  /** Pairs (2k, 2k + 1), else (k, k + rotaryDim / 2). */
  interleaved?: boolean;
  /** Default: `bhtd`. */
  layout?: RopeLayout;
}

/** [batch, heads, time, dim] (the default) or [batch, time, heads, dim]. */
export type RopeLayout = "bhtd" | "bthd";

/** Scaled dot-product attention, see `wick_attention`. */
export interface AttentionOptions {
  /** Default: 1 / sqrt(d). */
  scale?: number;
  /** Scores become softcap * tanh(score / softcap); default: they stay. */
  softcap?: number;
  /** Keys that a query sees, itself the last; default: all. */
  window?: number;
  /** A query sees no key after its own position. Default: false. */
  causal?: boolean;
  /** u8 or bool, broadcast to [b, h, t, s]; 0: not seen. */
  mask?: Tensor;
  /** Added to the scores. */
  bias?: Tensor;
  /** [h]: one more logit per head, without a value. */
  sinks?: Tensor;
  /** [h]: ALiBi. */
  slopes?: Tensor;
}

/** Of one spatial dim each, or one number for all of them. */
export interface ConvOptions {
  /** Default: 1, as of dilation. */
  stride?: number | number[];
  /** Zeros on both sides; default: 0. */
  padding?: number | number[];
  /** Distance of kernel elements. */
  dilation?: number | number[];
  /** Of convTranspose: elements more at the end; default: 0. */
  outputPadding?: number | number[];
  /** Parts of the channels that do not meet; default: 1. */
  groups?: number;
}

export interface PoolOptions {
  /** Default: the kernel. */
  stride?: number | number[];
  /** On both sides, at most half of the kernel; default: 0. */
  padding?: number | number[];
  /** Of maxPool; default: 1. */
  dilation?: number | number[];
  /** A last window may reach over the end, if it begins before. */
  ceilMode?: boolean;
  /** avgPool divides by the elements that are not padding. */
  excludesPadding?: boolean;
}

/** `linear`: of 2 neighbours in each dim; `cubic`: of 4 (Keys, 1981). */
export type ResizeMode = "nearest" | "linear" | "cubic";

/** Of g gates: lstm 4 (i f g o), gru 3 (r z n), rnn 1. */
export interface RnnWeights {
  /** [g h, i] */
  wIh: Tensor;
  /** [g h, h] */
  wHh: Tensor;
  /** [g h], as bHh; default: zeros. */
  bIh?: Tensor;
  bHh?: Tensor;
  /** Of lstm, [3 h]: what the gates i and f see of the last c, and o of the new one. */
  peepholes?: Tensor;
  /** Of gru: r multiplies h, and not U h + c. */
  resetsBefore?: boolean;
}

/** What becomes of the losses of elements: a scalar, or themselves. */
export type Reduction = "mean" | "sum" | "none";

export interface ClassLossOptions {
  /** [c], of each class. */
  weight?: Tensor;
  /** This share of the target is spread evenly over all classes; 0 to 1. */
  labelSmoothing?: number;
  /** Targets with this index count as nothing. */
  ignoredIndex?: number;
  /** The mean is divided by the sum of the targets' weights. Default: `mean`. */
  reduction?: Reduction;
}

/** How experts are chosen, see `wick_moe_route`. */
export interface RouteOptions {
  /** [e], added to the scores while experts are chosen. */
  bias?: Tensor;
  /** Default: `softmax`, over all experts. */
  score?: "softmax" | "sigmoid";
  /** Softmax over the logits of the chosen experts only. */
  topkFirst?: boolean;
  /** Weights are divided by their sum. */
  renormalize?: boolean;
  /** Weights are multiplied by it; default: 1. */
  scale?: number;
}

/** [e, i, d], down [e, d, i]; of the shared expert [s, d], [d, s]; blocks are allowed. */
export interface ExpertWeights {
  gate: Tensor;
  up: Tensor;
  down: Tensor;
  sharedGate?: Tensor;
  sharedUp?: Tensor;
  sharedDown?: Tensor;
}

/** How parameters change by their gradients, see `wick/train.h`. */
export interface OptimizerOptions {
  /** Loshchilov, Hutter, 2019; Chen et al., 2023. */
  kind: "sgd" | "adamw" | "lion";
  /** Of adamw and lion it is decoupled. Default: 0. */
  weightDecay?: number;
  /** Of sgd; below 1. Default: 0. */
  momentum?: number;
  /** Of sgd with momentum. */
  nesterov?: boolean;
  /** Below 1; default: adamw 0.9 and 0.999, lion 0.9 and 0.99. */
  beta1?: number;
  beta2?: number;
  /** Of adamw, outside of the root; default: 1e-8. */
  eps?: number;
  /** Of the parameters, by which `states` are called; default: "0", "1", ... */
  names?: string[];
}
