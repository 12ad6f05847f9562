/** The options and results of the package, as callers see them. */
import type { ErrorCode } from "./errors.js";
import type { Tensor } from "./tensor.js";

/** What computes: `auto` takes WebGPU where there is a real GPU, else the CPU, and says why. */
export type BackendName = "auto" | "cpu" | "webgpu";

/** `exact` computes in float32; `fast` may quantize activations and keeps caches in float16. */
export type MathMode = "exact" | "fast";

export type LogLevel = "debug" | "info" | "warning";

/** What a device may use; all of it where it is there. */
export interface GpuOptions {
  lowPower?: boolean;
  /** Asks for no more than every WebGPU device has. */
  defaultLimits?: boolean;
  f16?: boolean;
  subgroups?: boolean;
  dot4?: boolean;
  timestamps?: boolean;
}

export interface OpenOptions {
  backend?: BackendName;
  /** Default: `fast`. */
  math?: MathMode;
  /**
   * Of the CPU, at most 16; more than one needs a worker in a page that is cross-origin isolated,
   * or Node. Default: one for each processor, and one where a GPU computes.
   */
  threads?: number;
  /**
   * Default: true where there are workers (not in Node, nor in a worker of Firefox, where starting
   * another one may hang). False: in the caller's own thread.
   */
  worker?: boolean;
  onLog?: (level: LogLevel, message: string) => void;
  /** A GPU was lost; what was loaded comes back by itself with the next step. */
  onDeviceLost?: (message: string) => void;
  /**
   * Bytes that models, caches and all else may take of WebAssembly memory, at most 4 GiB. Default:
   * half of the machine's memory, and 1 to 1.5 GiB on phones and tablets, of a GPU's memory, too.
   */
  memoryLimit?: number;
  /** Where the files of the package lie. Default: beside this one, or where a bundler put them. */
  baseUrl?: string | URL;
  /** In Node and without a worker: a WebGPU that is not navigator.gpu. */
  gpu?: GPU;
  gpuOptions?: GpuOptions;
  /** An operation that the GPU cannot run is an error instead of a fallback. */
  strict?: boolean;
  /** Runs every operation in the specification, too, and compares; slow. */
  verify?: boolean;
  /** Times every kernel, see `profile`. */
  profile?: boolean;
  /** Tells of tensors, sessions and models that were not closed. */
  debug?: boolean;
}

export interface AdapterInfo {
  name: string;
  vendor: string;
  architecture: string;
  f16: boolean;
  subgroups: boolean;
  dot4: boolean;
  timestamps: boolean;
}

export interface DeviceInfo {
  backend: string;
  /** Of the hardware that computes. */
  name: string;
  isa: string;
  math: MathMode;
  threads: number;
  /** Bytes; 0: not known. */
  memoryTotal: number;
  memoryAvailable: number;
  /** AUTO took the CPU, and why. */
  isFallback: boolean;
  fallbackReason: string;
  adapter?: AdapterInfo;
}

export interface Capabilities {
  version: string;
  device: DeviceInfo;
  /** Every backend, with the reason where it is not available. */
  backends: { name: string; isAvailable: boolean; reason: string }[];
  /** Which module runs: `threads` where there are threads, see `OpenOptions.threads`. */
  module: "simd" | "threads";
  isWorker: boolean;
  isCrossOriginIsolated: boolean;
  /** Where downloads are kept. */
  cache: "opfs" | "cache-api" | "memory";
}

/** What the device has done and holds, since it was opened. */
export interface DeviceStats {
  allocations: number;
  liveBytes: number;
  peakBytes: number;
  /** Of tensors. */
  bufferBytes: number;
  bufferPeakBytes: number;
  /** Kernels run, those of them in plain loops, and operations that fell back to the CPU. */
  ops: number;
  referenceOps: number;
  fallbacks: number;
  decomposed: number;
  verified: number;
  submits: number;
  reads: number;
  bytesUploaded: number;
  bytesRead: number;
  losses: number;
  dispatches: number;
  longestSubmitSeconds: number;
  poolBytes: number;
  poolPeakBytes: number;
  poolFreeBytes: number;
  pipelines: number;
  pipelineFailures: number;
  compileSeconds: number;
  compileWaitSeconds: number;
  bindGroups: number;
  /** The module's own memory, which never shrinks. */
  heapBytes: number;
}

export interface KernelStats {
  name: string;
  calls: number;
  seconds: number;
  dispatches: number;
  bytes: number;
  flops: number;
}

export interface ModelInfo {
  name: string;
  architecture: string;
  /** Tensors by type: "q4_1 210, f32 61". */
  types: string;
  /** Matrix types without a fast kernel here; empty: none. */
  slowTypes: string;
  parameters: number;
  fileBytes: number;
  weightBytes: number;
  /** Layers that run on the CPU because the device has no room for them. */
  hostLayers: number;
  hostWeightBytes: number;
  layers: number;
  embeddingLength: number;
  vocabularySize: number;
  contextLength: number;
}

/** What a model needs, told from its header alone. */
export interface Preflight {
  /** All layers and the cache have room on the device. */
  fits: boolean;
  /** The same as a sentence with the numbers. */
  reason: string;
  name?: string;
  architecture?: string;
  fileBytes: number;
  weightBytes: number;
  cacheBytes: number;
  activationBytes: number;
  totalBytes: number;
  /** 0: the device does not tell. */
  availableBytes: number;
  contextLength: number;
  /** With which all layers fit; 0: not known. */
  longestContextLength: number;
  layers: number;
  deviceLayers: number;
}

/** How tokens are chosen; each left out or 0: that step is off, or has its default. */
export interface SamplingOptions {
  /** 0: the most likely token. */
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  typicalP?: number;
  repeatPenalty?: number;
  repeatLast?: number;
  frequencyPenalty?: number;
  presencePenalty?: number;
  /** [token, bias] pairs; null: the token is never chosen. */
  logitBias?: [number, number | null][];
  dryMultiplier?: number;
  dryBase?: number;
  dryAllowed?: number;
  dryLast?: number;
  dryBreakers?: string[];
  xtcProbability?: number;
  xtcThreshold?: number;
  mirostatTau?: number;
  mirostatEta?: number;
  /** 0: from the system's entropy. */
  seed?: number | string;
  /** GBNF. */
  grammar?: string;
  jsonSchema?: string | object;
}

export interface GenerateOptions extends SamplingOptions {
  /** Most tokens generated; 0: no limit but the context. */
  maxTokens?: number;
  /** Strings that end the text, themselves not part of it. */
  stop?: string[];
  /** Control tokens appear in the text. */
  special?: boolean;
  ignoreEnd?: boolean;
}

export interface SessionOptions extends GenerateOptions {
  /** Tokens; default: the model's, at most 4096. */
  contextLength?: number;
  /** Most prompt tokens computed at once; default: 512. */
  chunkLength?: number;
  cache?: "auto" | "f32" | "f16" | "q8_0" | "q4_0";
  /** Log probabilities with each token, of so many tokens. */
  logprobs?: number;
}

export interface ChatMessage {
  role: string;
  content: unknown;
  [key: string]: unknown;
}

export interface ChatOptions {
  tools?: object[];
  documents?: object[];
  /** Which of the model's templates; default: its main one. */
  template?: string;
  /** The last message is the assistant's, to be continued. */
  continueLast?: boolean;
}

/** Why a generation has ended. */
export type EndReason =
  "none" | "token" | "stop" | "max-tokens" | "context-full" | "prompt" | "grammar";

export interface Logprob {
  id: number;
  logprob: number;
}

/** A token that was generated. */
export interface Token {
  /** Undefined: no token, but text that was held back until the end. */
  id: number | undefined;
  /** Whole characters; empty while one is incomplete. */
  text: string;
  /** Milliseconds since the call. */
  time: number;
  /** First of the token itself, then of the most likely ones. */
  logprobs?: Logprob[];
}

export interface SessionStats {
  promptTokens: number;
  reusedTokens: number;
  generatedTokens: number;
  promptSeconds: number;
  generateSeconds: number;
  firstTokenSeconds: number;
  cacheBytes: number;
  contextUsed: number;
  contextLength: number;
  seed: number;
}

/** Types of elements; f64 and the integers of 64 bits are computed by the CPU. */
export type ScalarDtype =
  "f32" | "f16" | "bf16" | "f64" | "i64" | "i32" | "i16" | "i8" | "u32" | "u8" | "bool";

/** Those of GGML files: of weights alone. */
export type BlockDtype =
  | "q4_0" | "q4_1" | "q5_0" | "q5_1" | "q8_0" | "q8_1" | "q2_k" | "q3_k" | "q4_k" | "q5_k" | "q6_k"
  | "q8_k" | "iq2_xxs" | "iq2_xs" | "iq3_xxs" | "iq1_s" | "iq4_nl" | "iq3_s" | "iq2_s" | "iq4_xs"
  | "iq1_m" | "tq1_0" | "tq2_0" | "mxfp4" | "nvfp4" | "q1_0" | "q2_0";

export type Dtype = ScalarDtype | BlockDtype;

export interface TensorInfo {
  dtype: Dtype;
  shape: number[];
}

/** What a tensor is read as: f16 and bf16 as Float32Array, u8, bool and blocks as Uint8Array. */
export type TensorValues =
  | Float32Array | Float64Array | BigInt64Array | Int32Array | Int16Array | Int8Array | Uint32Array
  | Uint8Array;

/** What a tensor is made of; Uint16Array: the bits of f16 or bf16. */
export type TensorData = TensorValues | Uint16Array | NestedNumbers;

/** Numbers in arrays of arrays, whose lengths are the shape. */
export type NestedNumbers = number | NestedNumbers[];

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
  /** Tensor i is `@group(0) @binding(i)`; the uniform comes behind them. */
  buffers: ("read" | "read_write")[];
  /** As WGSL lays the struct out, padding included; at most 512. Default: no uniform. */
  uniformBytes?: number;
  /** What the source uses. */
  f16?: boolean;
  subgroups?: boolean;
  dot4?: boolean;
}

/** Which kernels are verified, and on how many random operations, see `wick/verify.h`. */
export interface VerifyOptions {
  /** Names, in which `*` and `?` stand for any characters; default: all that the device can run. */
  kernels?: string;
  /** Of each kernel; default: 25. */
  cases?: number;
  /** The same one gives the same operations. */
  seed?: number | string;
}

/** What came out for one kernel. */
export interface KernelCheck {
  kernel: string;
  /** `OK`; `MISMATCH`: it is wrong; `NOT_FOUND`: no random operation was one that it takes. */
  status: "OK" | ErrorCode;
  cases: number;
  elements: number;
  /** Differences, relative to the root mean square of the result that they are part of. */
  meanError: number;
  rmsError: number;
  maxError: number;
  /** The largest part of its bound that a difference was. */
  worst: number;
  /** Of the last case. */
  seed: number;
  /** What was wrong; empty: nothing. */
  failure: string;
  /** The device does not take it any more. */
  isDisabled: boolean;
}

/** Rotary embedding, see `wick_rope`. */
export interface RopeOptions {
  positions?: Tensor;
  /** Default: all of the last dim. */
  rotaryDim?: number;
  /** Default: 10000. */
  theta?: number;
  scaleFactor?: number;
  /** Position of the first row, without `positions`. */
  offset?: number;
  /** Pairs (2k, 2k + 1), else (k, k + rotaryDim / 2). */
  interleaved?: boolean;
  layout?: RopeLayout;
}

/** [batch, heads, time, dim] (the default) or [batch, time, heads, dim]. */
export type RopeLayout = "bhtd" | "bthd";

/** Scaled dot-product attention, see `wick_attention`. */
export interface AttentionOptions {
  /** Default: 1 / sqrt(d). */
  scale?: number;
  softcap?: number;
  window?: number;
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

export interface TokenizeOptions {
  /** Puts the model's begin (and end) tokens around it. Default: false. */
  addSpecial?: boolean;
  /** Text such as `<|im_end|>` becomes the special token. Default: false. */
  parseSpecial?: boolean;
}

export interface EmbedOptions {
  pooling?: "auto" | "none" | "mean" | "cls" | "last";
  /** Vectors keep their length, which is made 1 otherwise. */
  raw?: boolean;
  /** Of a text. */
  maxTokens?: number;
}

export interface Progress {
  /**
   * `connect`: a server is asked; `download`, `verify`: of the bytes; `load`: of the model;
   * `compile`: the GPU's kernels.
   */
  phase: "connect" | "download" | "verify" | "load" | "compile";
  /** Bytes; total undefined: not known yet. */
  done: number;
  total: number | undefined;
  /** Of a download, over the last seconds. */
  bytesPerSecond?: number;
  secondsLeft?: number | undefined;
}

/** Reading of a prompt. */
export interface PromptProgress {
  done: number;
  total: number;
}
