/** What callers may give to each call, by name and kind. */
import { kindOf, WickError } from "./errors.js";
import type { OperationOptions } from "./operation.js";
import type { CallOptions } from "./session.js";
import type { KernelOptions, OptimizerOptions } from "./tensor_types.js";
import type {
  ApiOptions, ChatOptions, EmbedOptions, FinetuneOptions, GenerateOptions, GpuOptions, OpenOptions,
  RerankOptions, SessionOptions, TokenizeOptions, VerifyOptions,
} from "./types.js";
import type { LoadOptions, RequestOptions } from "./wick.js";

/** What a value must be, in words, and whether it is. Finer ranges are the core's. */
type Rule = readonly [string, (value: unknown) => boolean];
/** One for each option: none can be forgotten. */
type Rules<T> = Readonly<Record<keyof T, Rule>>;

const ofType = (type: string): Rule =>
  [`of type ${type}`, (value) => typeof value === type];
const oneOf = (...values: unknown[]): Rule =>
  [`one of ${values.join(", ")}`, (value) => values.includes(value)];
const whole = (least: number, most: number): Rule =>
  [`a whole number from ${least} to ${most}`, (value) =>
    Number.isInteger(value) && value as number >= least && value as number <= most];

const FLAG = ofType("boolean"), CALL = ofType("function"), OBJECT = ofType("object");
/** They end at zero bytes in the core. */
const isText = (value: unknown): boolean => typeof value === "string" && !value.includes("\0");
const TEXT: Rule = ["a string without zero bytes", isText];
const REAL: Rule = ["a finite number", Number.isFinite];
const COUNT = whole(0, 2 ** 32 - 1), LENGTH = whole(1, 2 ** 31 - 1);
/** What reads it says what is wrong with it. */
const ANY: Rule = ["", () => true];
const LIST: Rule = ["an array", Array.isArray];
const OBJECTS: Rule = ["an array of objects", (value) => Array.isArray(value)
  && value.every((item) => OBJECT[1](item) && item !== null && !Array.isArray(item))];
const TEXTS: Rule = ["an array of strings without zero bytes",
                     (value) => Array.isArray(value) && value.every(isText)];
export const SEED: Rule = ["a whole number below 2^64 or its digits", (value) =>
  ["number", "bigint", "string"].includes(typeof value) && /^\d{1,20}$/.test(String(value))
  && BigInt(value as string) < 2n ** 64n];
/** In JSON NaN is null, which is a bias: the token is never chosen. */
const BIASES: Rule = ["an array of [token, bias]", (value) =>
  Array.isArray(value) && value.every((pair) => Array.isArray(pair) && COUNT[1](pair[0])
    && (pair[1] === null || (typeof pair[1] === "number" && pair[1] < Infinity)))];
const SCHEMA: Rule = ["JSON, as an object or a text", (value) =>
  isText(value) || (OBJECT[1](value) && isJson(value))];
const BYTES: Rule = ["a Uint8Array", (value) => value instanceof Uint8Array];
const SIGNAL: Rule = ["an AbortSignal", (value) => "aborted" in Object(value)];

/** Whether the value can be written as JSON: it has no cycle and no bigint. */
function isJson(value: unknown): boolean {
  try {
    return JSON.stringify(value) !== undefined;
  } catch {
    return false;
  }
}

export const GPU: Rules<GpuOptions> = {
  lowPower: FLAG, defaultLimits: FLAG, f16: FLAG, subgroups: FLAG, dot4: FLAG, timestamps: FLAG,
};
export const OPEN: Rules<OpenOptions> = {
  backend: oneOf("auto", "cpu", "webgpu"), math: oneOf("exact", "fast"), threads: whole(0, 1024),
  worker: FLAG, onLog: CALL, onDeviceLost: CALL, memoryLimit: whole(1, 2 ** 32), baseUrl: ANY,
  gpu: OBJECT, gpuOptions: OBJECT, strict: FLAG, verify: FLAG, profile: FLAG, debug: FLAG,
  tensors: FLAG, api: FLAG, fusion: oneOf("auto", "off", "always"),
};
const GENERATE: Rules<GenerateOptions> = {
  maxTokens: COUNT, stop: TEXTS, special: FLAG, ignoreEnd: FLAG, temperature: REAL, topK: COUNT,
  topP: REAL, minP: REAL, typicalP: REAL, repeatPenalty: REAL, repeatLast: COUNT,
  frequencyPenalty: REAL, presencePenalty: REAL, logitBias: BIASES, dryMultiplier: REAL,
  dryBase: REAL, dryAllowed: COUNT, dryLast: COUNT, dryBreakers: TEXTS, xtcProbability: REAL,
  xtcThreshold: REAL, mirostatTau: REAL, mirostatEta: REAL, seed: SEED, grammar: TEXT,
  jsonSchema: SCHEMA,
};
export const SESSION: Rules<SessionOptions> = {
  contextLength: LENGTH, chunkLength: LENGTH,
  cache: oneOf("auto", "f32", "f16", "q8_0", "q4_0"), logprobs: COUNT, noReuse: FLAG,
  speculate: oneOf("auto", "none", "ngram", "ahead"), ...GENERATE,
};
export const API: Rules<ApiOptions> = {
  name: TEXT, chatTemplate: TEXT, parallel: whole(1, 1024), maxQueue: COUNT, ...SESSION,
};
const REQUEST: Rules<RequestOptions> = { headers: ANY, fetch: CALL, stallTimeout: LENGTH };
export const PREFLIGHT: Rules<SessionOptions & RequestOptions & { signal?: AbortSignal }> = {
  ...SESSION, ...REQUEST, signal: SIGNAL,
};
export const GENERATION: Rules<GenerateOptions & CallOptions> = {
  ...GENERATE, signal: SIGNAL, onPrompt: CALL,
};
export const TEMPLATE: Rules<ChatOptions> = {
  tools: OBJECTS, documents: OBJECTS, template: TEXT, continueLast: FLAG,
};
export const CHAT: Rules<GenerateOptions & CallOptions & ChatOptions> = {
  ...GENERATION, ...TEMPLATE,
};
export const LOAD: Rules<LoadOptions> = {
  onProgress: CALL, signal: SIGNAL, cache: oneOf(true, false, "read"),
  sha256: ANY,
  session: OBJECT, force: FLAG, connections: whole(1, 16), ...REQUEST,
};
export const RERANK: Rules<RerankOptions & { signal?: AbortSignal }> = {
  maxTokens: COUNT, signal: SIGNAL,
};
export const EMBED: Rules<EmbedOptions & { signal?: AbortSignal }> = {
  pooling: oneOf("auto", "none", "mean", "cls", "last"), raw: FLAG, ...RERANK,
};
export const TOKENIZE: Rules<TokenizeOptions> = { addSpecial: FLAG, parseSpecial: FLAG };
export const DETOKENIZE: Rules<{ special?: boolean }> = { special: FLAG };
export const VERIFY: Rules<VerifyOptions & { onCheck?: unknown; signal?: unknown }> = {
  kernels: TEXT, cases: COUNT, seed: SEED, onCheck: CALL, signal: SIGNAL,
};
export const KERNEL: Rules<KernelOptions> = {
  source: TEXT, entry: TEXT, label: TEXT, workgroup: LIST, buffers: TEXTS, uniformBytes: COUNT,
  f16: FLAG, subgroups: FLAG, dot4: FLAG,
};

export const OPTIMIZER: Rules<OptimizerOptions> = {
  kind: oneOf("sgd", "adamw", "lion"), weightDecay: REAL, momentum: REAL, nesterov: FLAG,
  beta1: REAL, beta2: REAL, eps: REAL, names: TEXTS,
};
export const OPERATION: Rules<OperationOptions> = {
  name: TEXT, inputs: whole(1, 8), outputs: whole(1, 8), shape: CALL, compute: CALL,
  kernel: OBJECT, launch: CALL, gradient: CALL,
};

export const FINETUNE: Rules<FinetuneOptions & { signal?: AbortSignal }> = {
  text: ["a string", (value) => typeof value === "string"],
  jsonLines: ["a string", (value) => typeof value === "string"],
  contextLength: LENGTH, rank: whole(1, 4096), alpha: REAL, rate: REAL, decay: REAL, maxNorm: REAL,
  steps: COUNT, epochs: COUNT, batch: LENGTH, heldOut: REAL, seed: SEED, signal: SIGNAL,
  state: BYTES,
};

/** Whether so few letters that are wrong, missing or too many make one name of the other. */
const isNear = (a: string, b: string, edits: number): boolean =>
  a[0] === b[0] ? a === "" || isNear(a.slice(1), b.slice(1), edits)
    : edits > 0 && [[1, 0], [0, 1], [1, 1]].some(([i, j]) =>
      isNear(a.slice(i), b.slice(j), edits - 1));

function unknownOption(name: string, names: string[]): WickError {
  const near = [0, 1, 2].flatMap((edits) => names.filter((known) =>
    isNear(name.toLowerCase(), known.toLowerCase(), edits)))[0];
  return new WickError("VALUE", `the option '${name.slice(0, 40)}' is not known here`
    + `${near ? `: did you mean '${near}'?` : ":"} There are ${names.join(", ")}`);
}

/** As JSON, in which they go to the module, has it; there, a whole number ends at 2^53. */
const plain = (name: string, value: unknown): unknown =>
  name === "seed" ? String(BigInt(value as string))
    : name === "jsonSchema" && OBJECT[1](value) ? JSON.stringify(value) : value;

/** What of the options is given, each known and as its rule wants it. */
export function checked<T extends object>(rules: Rules<T>, given: T): T {
  if (!OBJECT[1](given) || given === null || Symbol.iterator in given)
    throw new WickError("ARGUMENT", `options are given as an object, not as ${kindOf(given)}`);
  const entries = Object.entries(given).filter(([, value]) => (value ?? undefined) !== undefined);
  const names = Object.keys(rules);
  for (const [name, value] of entries) {
    if (!names.includes(name)) throw unknownOption(name, names);
    const [words, fits] = rules[name as keyof T];
    if (!fits(value))
      throw new WickError("VALUE", `the option '${name}' must be ${words}, not ${kindOf(value)}`);
  }
  return Object.fromEntries(entries.map(([name, value]) => [name, plain(name, value)])) as T;
}
