/** The options and results of the package, as callers see them. */
import type { ErrorCode } from "./errors.js";

/** What computes: `auto` takes WebGPU where there is a real GPU, else the CPU, and says why. */
export type BackendName = "auto" | "cpu" | "webgpu";

/** `exact` computes in float32; `fast` may quantize activations and keeps caches in float16. */
export type MathMode = "exact" | "fast";

export type LogLevel = "debug" | "info" | "warning";

/** What a WebGPU device may use. */
export interface GpuOptions {
  /** The GPU that takes less power, where there are two. Default: the faster one. */
  lowPower?: boolean;
  /** Asks for no more than every WebGPU device has. Default: for all that the adapter has. */
  defaultLimits?: boolean;
  /** Arithmetic in float16. Default of this and the next three: used where it is there. */
  f16?: boolean;
  subgroups?: boolean;
  /** Dot products of four bytes. */
  dot4?: boolean;
  /** Times of kernels by the GPU's own clock, for `profile`. */
  timestamps?: boolean;
}

export interface OpenOptions {
  /** Default: `auto`. */
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
  /** Called with each message of the log. What callbacks throw goes to the console. */
  onLog?: (level: LogLevel, message: string) => void;
  /** A GPU was lost, called for each device on it; what was loaded comes back by itself with the
   * next step. */
  onDeviceLost?: (message: string) => void;
  /**
   * Bytes that models, caches and all else may take of WebAssembly memory, at most 4 GiB. Default:
   * half of the machine's memory (in Node all of it), and 1 to 1.5 GiB on phones and tablets, of a
   * GPU's memory, too.
   */
  memoryLimit?: number;
  /** Where the files of the package lie. Default: beside this one, or where a bundler put them. */
  baseUrl?: string | URL;
  /** A WebGPU that is not navigator.gpu, for an engine without a worker, as in Node. */
  gpu?: GPU;
  gpuOptions?: GpuOptions;
  /**
   * Chains of operations on elements run as one, and what no caller can read is not computed: where
   * it pays (`auto`, the default), never, or always. On the CPU the results have the same bits.
   */
  fusion?: "auto" | "off" | "always";
  /** An operation that the GPU cannot run is an error instead of a fallback. */
  strict?: boolean;
  /** Runs every operation in the specification, too, and compares; slow. */
  verify?: boolean;
  /** Times every kernel, see `profile`. */
  profile?: boolean;
  /** Reports tensors, sessions and models that were not closed. */
  debug?: boolean;
  /**
   * Loads the module with tensors at once, and models into it, too: one device for both, and no
   * second module. Default: false, it is loaded when tensors, kernels of the page's own or `verify`
   * are first used, and opens a device of its own.
   */
  tensors?: boolean;
  /**
   * Loads the module that answers APIs, see `Model.api`; not beside `tensors`. Default: false.
   */
  api?: boolean;
}

/** The GPU as WebGPU describes it, and which features the device uses. */
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
  /** `cpu` or `webgpu`. */
  backend: string;
  /** Of the hardware that computes. */
  name: string;
  /** Instruction set of the CPU's kernels: `simd128`. */
  isa: string;
  math: MathMode;
  /** That the CPU computes with. */
  threads: number;
  /** Bytes; 0: not known. */
  memoryTotal: number;
  /** Bytes that are not in use; 0: not known. */
  memoryAvailable: number;
  /** `auto` took the CPU. */
  isFallback: boolean;
  /** Why; empty: it did not. */
  fallbackReason: string;
  adapter?: AdapterInfo;
}

export interface Capabilities {
  /** Of the library, as `0.1.0`. */
  version: string;
  device: DeviceInfo;
  /** Every backend, with the reason where it is not available. */
  backends: { name: string; isAvailable: boolean; reason: string }[];
  /** Which module runs: `threads` where there are threads, see `OpenOptions.threads`. */
  module: "simd" | "threads";
  /** Whether the engine has a worker of its own. */
  isWorker: boolean;
  isCrossOriginIsolated: boolean;
  /** Where downloads are kept. */
  cache: "opfs" | "cache-api" | "memory";
}

/** What the device has done and holds, since it was opened. */
export interface DeviceStats {
  /** Calls of the allocator, and bytes that it holds and held at most. */
  allocations: number;
  liveBytes: number;
  peakBytes: number;
  /** Bytes of tensors, now and at most. */
  bufferBytes: number;
  bufferPeakBytes: number;
  /** Kernels run, those of them in plain loops, and operations that fell back to the CPU. */
  ops: number;
  referenceOps: number;
  fallbacks: number;
  /** Operations that became parts of chains, and those whose results no caller could read. */
  fused: number;
  unread: number;
  /** Fused operations that were computed in their parts. */
  decomposed: number;
  /** Operations that agree with the specification, where the engine was opened with `verify`. */
  verified: number;
  submits: number;
  reads: number;
  bytesUploaded: number;
  bytesRead: number;
  /** How often the GPU was lost and opened again. */
  losses: number;
  /** Of a GPU, as all that follows: what the operations came to. */
  dispatches: number;
  longestSubmitSeconds: number;
  /** How long it was idle, as polls saw it, while commands were made for it. */
  encodeSeconds: number;
  /** Bytes taken for buffers, now and at most, and those of them that are free for others. */
  poolBytes: number;
  poolPeakBytes: number;
  poolFreeBytes: number;
  /** Programs compiled, and those that could not be. */
  pipelines: number;
  pipelineFailures: number;
  /** In which something was being compiled, and in which nothing else went on. */
  compileSeconds: number;
  compileWaitSeconds: number;
  bindGroups: number;
  /** Bytes of the module's own memory, which never shrinks. */
  heapBytes: number;
}

/** What a kernel has done. */
export interface KernelStats {
  name: string;
  /** Operations, or pieces of those that are cut. */
  calls: number;
  seconds: number;
  /** Of a GPU: what the calls came to. */
  dispatches: number;
  /** That the operations need, each operand once. */
  bytes: number;
  /** Multiplications and additions of products. */
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
  /** Bytes of weights on the device. */
  weightBytes: number;
  /** Layers that run on the CPU because the device has no room for them. */
  hostLayers: number;
  hostWeightBytes: number;
  layers: number;
  /** Numbers of a vector of `embed`. */
  embeddingLength: number;
  /** Tokens. */
  vocabularySize: number;
  /** Tokens that the model was made for. */
  contextLength: number;
  /** Of a reranker: numbers that its classifier gives; 0: it is none. */
  labels: number;
}

/** What a model needs, computed from its header alone. */
export interface Preflight {
  /** All layers and the cache have room on the device. */
  fits: boolean;
  /** The same as a sentence with the numbers. */
  reason: string;
  name?: string;
  architecture?: string;
  fileBytes: number;
  weightBytes: number;
  /** Of a session with this context. */
  cacheBytes: number;
  activationBytes: number;
  /** Of these three, the vocabulary and the process itself. */
  totalBytes: number;
  /** 0: unknown. */
  availableBytes: number;
  /** Tokens: as asked for, or the default. */
  contextLength: number;
  /** With which all layers fit; 0: not known. */
  longestContextLength: number;
  layers: number;
  /** Those that have room on the device. */
  deviceLayers: number;
}

/** How tokens are chosen; each left out or 0: that step is off, or has its default. */
export interface SamplingOptions {
  /** 0: the most likely token. */
  temperature?: number;
  /** The most likely tokens that stay. */
  topK?: number;
  /** Share of the probability that stays, of the most likely tokens. */
  topP?: number;
  /** Least probability, as a share of the most likely token's. */
  minP?: number;
  /** Share of the probability that stays, of the most typical tokens. */
  typicalP?: number;
  /** Divides the logits of tokens that occurred; 1: off. */
  repeatPenalty?: number;
  /** Tokens that the three penalties look back at; default: 64. */
  repeatLast?: number;
  /** Taken off a logit for each occurrence, -100 to 100. */
  frequencyPenalty?: number;
  /** Taken off once where the token occurred, -100 to 100. */
  presencePenalty?: number;
  /** [token, bias] pairs; null: the token is never chosen. */
  logitBias?: [number, number | null][];
  /** DRY: what a token loses that would go on with a repetition, see `wick/session.h`. */
  dryMultiplier?: number;
  /** 1 to 100; default: 1.75. */
  dryBase?: number;
  /** Tokens that may be repeated; default: 2. */
  dryAllowed?: number;
  /** Tokens that it looks back at; default: all. */
  dryLast?: number;
  /** Texts across which nothing is a repetition; default: newline, `:`, `"` and `*`. */
  dryBreakers?: string[];
  /** XTC: how often the most likely tokens but the last of them are left out, 0 to 1. */
  xtcProbability?: number;
  /** From which probability on a token is one of these; default: 0.1. */
  xtcThreshold?: number;
  /** Mirostat 2: the surprise that is aimed at, in bits. */
  mirostatTau?: number;
  /** How fast it adapts; default: 0.1. */
  mirostatEta?: number;
  /** Below 2^64; digits where a number is not exact. Default, and 0: from the system's entropy. */
  seed?: number | bigint | string;
  /** In GBNF: what is generated is a text of this grammar. */
  grammar?: string;
  /** What is generated is JSON that this schema accepts; beside it there is no grammar. */
  jsonSchema?: string | object;
}

export interface GenerateOptions extends SamplingOptions {
  /** Most tokens generated; 0: no limit but the context. */
  maxTokens?: number;
  /** Strings that end the text, themselves not part of it. */
  stop?: string[];
  /** Control tokens appear in the text; default: only in that of `chat`. */
  special?: boolean;
  /** The model's end tokens do not end the text. */
  ignoreEnd?: boolean;
}

export interface SessionOptions extends GenerateOptions {
  /** Tokens; default: the model's (of LongRoPE its original one), at most 4096. */
  contextLength?: number;
  /** Most prompt tokens computed at once; default: 512. */
  chunkLength?: number;
  /** Type of keys and values; default: `auto`, f32 in exact math, else f16. */
  cache?: "auto" | "f32" | "f16" | "q8_0" | "q4_0";
  /** How many log probabilities come with each token, at most 1024. */
  logprobs?: number;
  /**
   * Guesses at the tokens to come, which change no text: `ngram`, what followed when the last
   * tokens were in the text before, computed together; `ahead`, what a GPU draws itself (`topK` up
   * to 128, or temperature 0), so that it does not wait for the page; default: `auto`, both where
   * they are measured to pay.
   */
  speculate?: "auto" | "none" | "ngram" | "ahead";
  /** Computes all of its tokens itself, also those that another text has in the cache. */
  noReuse?: boolean;
}

/** What requests to an API do not say: of the sessions that answer them. */
export interface ApiOptions extends SessionOptions {
  /** Of the model in answers; default: that in its file. */
  name?: string;
  /** In place of the model's own; default where that has none: ChatML. */
  chatTemplate?: string;
  /** Texts that are generated at once; default: 4. */
  parallel?: number;
  /** Requests that may wait for their turn; more are answered by status 503; default: 64. */
  maxQueue?: number;
}

/** A message as the model's template takes it, with whatever else that reads. */
export interface ChatMessage {
  /** `system`, `user`, `assistant`, `tool`, ... */
  role: string;
  /** For most templates a text; parts of text, as in OpenAI's API, become one. */
  content: unknown;
  [key: string]: unknown;
}

export interface ChatOptions {
  /** Functions that the model may call, as JSON schemas in the form of OpenAI's API. */
  tools?: object[];
  /** Texts to answer from, where the template takes them. */
  documents?: object[];
  /** Which of the model's templates; default: its main one. */
  template?: string;
  /** The last message is the assistant's, to be continued. */
  continueLast?: boolean;
}

/**
 * Why a generation has ended: `none`, there was nothing to go on from; `token`, the model's end;
 * `stop`, a stop string; `max-tokens`; `context-full`; `grammar`, its text is complete.
 */
export type EndReason =
  "none" | "token" | "stop" | "max-tokens" | "context-full" | "prompt" | "grammar";

export interface Logprob {
  /** The token. */
  id: number;
  /** Natural logarithm of its probability. */
  logprob: number;
}

/** A part of an answer, without the tags that a model puts around its thinking and its calls. */
export interface AnswerSpan {
  /** `call`: the model calls a tool; one span holds the whole call, as the model wrote it. */
  kind: "content" | "reasoning" | "call";
  /** Not empty. */
  text: string;
  /** Before a call, as `<tool_call>` or `[TOOL_CALLS]`; empty: the answer is JSON alone. */
  tag?: string;
  /** What a call says, in the form of any family; undefined: it makes no sense, or was cut off. */
  calls?: ToolCall[];
}

/** A call of a tool. */
export interface ToolCall {
  name: string;
  arguments: Record<string, unknown>;
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

/** A token of `chat`. */
export interface AnswerToken extends Token {
  /**
   * What has become known of the answer. Text that may become a tag, or a call that is not
   * complete, comes with a later token, at the latest with the last one.
   */
  spans: AnswerSpan[];
}

export interface SessionStats {
  promptTokens: number;
  /** Those of them that the cache held already, from this text or another one. */
  reusedTokens: number;
  generatedTokens: number;
  /** Guesses that were computed, and that were right; see `speculate`. */
  draftedTokens: number;
  acceptedTokens: number;
  promptSeconds: number;
  generateSeconds: number;
  /** From the prompt to the first token. */
  firstTokenSeconds: number;
  /** Of the whole context, used or not. */
  cacheBytes: number;
  /** Tokens in the context, and how many it holds. */
  contextUsed: number;
  contextLength: number;
  /** Digits, as the option `seed` takes them; `0`: nothing is drawn. */
  seed: string;
}

/** How an adapter is trained, see `wick/finetune.h`. */
export interface FinetuneOptions {
  /** A long text, of which all is learned, cut into examples of contextLength tokens. */
  text?: string;
  /** In each line an example as a JSON object: `{ text }`, `{ prompt, completion }` or `{ messages }`,
   * of which the completion alone, or what the assistant says, is learned. */
  jsonLines?: string;
  /** Most tokens of an example; default: 256. */
  contextLength?: number;
  /** Of the factors; default: 8. */
  rank?: number;
  /** Changes are scaled by alpha / rank; default: 16. */
  alpha?: number;
  /** Of AdamW; default: 1e-4. */
  rate?: number;
  /** Weight decay; default: 0. */
  decay?: number;
  /** Gradients are clipped to this norm; default: 1. */
  maxNorm?: number;
  /** Default: as many as the epochs have. */
  steps?: number;
  /** Passes over the examples; default: 1. */
  epochs?: number;
  /** Examples of a step; default: 8. */
  batch?: number;
  /** This share of the examples, the last ones, is not learned from but measured. Default: 0. */
  heldOut?: number;
  /** Of the order of the examples, and of where the factors begin. */
  seed?: number | bigint | string;
  /** What `checkpoint` of a training with this model, data and options has given: to go on from
   * there. `steps` and `rate` may be others. */
  state?: Uint8Array;
}

/** What is learned from. */
export interface ExamplesInfo {
  examples: number;
  tokens: number;
  /** Of the tokens. */
  learned: number;
  /** Examples that were too long, and those of them of which nothing was left. */
  cut: number;
  leftOut: number;
}

export interface FinetuneEvent {
  /** `step`: the loss of its examples, before it; `held-out`: that of the held-out ones, after it;
   * `restored`: the GPU was lost and is back, and the steps after this one come again. */
  kind: "step" | "held-out" | "restored";
  step: number;
  /** Of the whole training. */
  steps: number;
  /** That all steps have read. */
  tokens: number;
  /** Nats for each learned token; 0 where it is `restored`. */
  loss: number;
  /** e^loss. */
  perplexity: number;
}

/** Which kernels are verified, and on how many random operations, see `wick/verify.h`. */
export interface VerifyOptions {
  /** Names, in which `*` and `?` stand for any characters; default: all that the device can run. */
  kernels?: string;
  /** Of each kernel; default: 25. */
  cases?: number;
  /** The same one gives the same operations. */
  seed?: number | bigint | string;
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
  /** Of the last case, as digits: `cases: 1` with this seed is that case alone. */
  seed: string;
  /** What was wrong; empty: nothing. */
  failure: string;
  /** The device does not take it any more. */
  isDisabled: boolean;
}

export interface TokenizeOptions {
  /** Puts the model's begin (and end) tokens around it. Default: false. */
  addSpecial?: boolean;
  /** Text such as `<|im_end|>` becomes the special token. Default: false. */
  parseSpecial?: boolean;
}

export interface EmbedOptions {
  /** What of a text's tokens is its vector; default: `auto`, as the model says. */
  pooling?: "auto" | "none" | "mean" | "cls" | "last";
  /** Vectors keep their length, which is made 1 otherwise. */
  raw?: boolean;
  /** Most of a text, a longer one is refused (STATE). Default: the context, at most 4096. */
  maxTokens?: number;
}

export interface RerankOptions {
  /** Most of the query with a document, more are refused (STATE). Default: the context, at most 4096. */
  maxTokens?: number;
}

/** A document in the order of how well it answers the query. */
export interface RankedDocument {
  /** Of the documents that were given. */
  index: number;
  /** Larger for a better one; their range is the model's. */
  score: number;
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
  /** Of a download, over the last five seconds. */
  bytesPerSecond?: number;
  /** Undefined: not known. */
  secondsLeft?: number | undefined;
}

/** Reading of a prompt. */
export interface PromptProgress {
  /** Tokens. */
  done: number;
  total: number;
}
