// What the package is compared with, and where a server of the tests has it.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startStaticServer } from "../../web/static_server.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
const { WICK_REAL_MODEL = "", WICK_SHARED_DATA = "" } = process.env;
export const families = join(WICK_SHARED_DATA, "families");

/**
 * A server of the package, the tests' pages and models; options: of startStaticServer, whose routes
 * come beside these.
 */
export const serve = ({ routes = {}, ...options } = {}) => startStaticServer({
  routes: {
    "/web/dist/": join(root, "web/dist"), "/tests/": join(root, "tests"),
    "/real/": dirname(WICK_REAL_MODEL), "/families/": families, ...routes,
  },
  ...options,
});

/** stories260K: its address below a server's, and what follows greedily on a prompt. */
export const stories = {
  path: "tests/data/stories260K.gguf",
  nVocab: 512,
  ...JSON.parse(readFileSync(join(root, "tests/data/stories260K.greedy.json"))),
};

/** The bytes of stories260K with a chat template, by which its metadata begins; aligned as before. */
export function withTemplate(template) {
  const key = "tokenizer.chat_template", STRING = 8, ALIGNMENT = 32;
  const size = 8 + key.length + 4 + 8 + template.length;
  const text = template.padEnd(template.length + (ALIGNMENT - size % ALIGNMENT) % ALIGNMENT);
  const value = Buffer.alloc(8 + key.length + 4 + 8 + text.length);
  value.writeUInt32LE(key.length, 0);
  value.write(key, 8);
  value.writeUInt32LE(STRING, 8 + key.length);
  value.writeUInt32LE(text.length, 12 + key.length);
  value.write(text, 20 + key.length);
  const file = readFileSync(join(root, stories.path));
  const head = Buffer.from(file.subarray(0, 24));
  head.writeUInt32LE(head.readUInt32LE(16) + 1, 16);
  return Buffer.concat([head, value, file.subarray(24)]);
}

/** Why SmolLM2 cannot be compared here; undefined: it can. */
export const missingSmol = !existsSync(WICK_REAL_MODEL) ? "SmolLM2 was not fetched"
  : !existsSync(WICK_SHARED_DATA) ? "WICK_SHARED_DATA is not set" : undefined;

/** SmolLM2's address, and what transformers computes after a prompt. */
export const smol = missingSmol ? undefined : {
  path: "real/SmolLM2-135M-Instruct.Q4_1.gguf",
  nVocab: 49152,
  ...JSON.parse(readFileSync(join(WICK_SHARED_DATA, "real/smollm2-135m-instruct-q4_1.json")))
    .greedy[0],
};

/** float32 rows of an npy file in C order, of its two dimensions. */
function readNpy(path) {
  const bytes = readFileSync(path);
  const begin = 10 + bytes.readUInt16LE(8);
  const [, n, m] = /'shape': \((\d+), (\d+)\)/.exec(bytes.toString("latin1", 10, begin));
  const values = new Float32Array(bytes.buffer.slice(bytes.byteOffset + begin));
  return { n: Number(n), m: Number(m), values };
}

/** Whether what takes long runs, too: `make test-all`. */
export const testsAll = process.env.WICK_TEST_ALL === "1";

/** Why what takes long is skipped; undefined: it is not. */
export const longOnes = testsAll ? undefined : "runs in make test-all";

/** How often tests for leaks and races repeat something: n times in `make test-all`, else fewer. */
export const repeated = (n) => testsAll ? n : Math.max(4, Math.ceil(n / 5));

/** Why there are no fixtures of families; undefined: there are. */
export const missingFamilies = existsSync(families) ? undefined
  : "WICK_SHARED_DATA names no folder with the families";

/** Every model of families whose logits are recorded. */
export const familyNames = missingFamilies ? []
  : readdirSync(families).filter((name) => name.endsWith(".logits.npy"))
    .map((name) => name.replace(".logits.npy", ""));

/** A family's model, its prompt, the log probabilities after it and the bound of their error. */
export function readFamily(name) {
  const { n, m, values } = readNpy(join(families, `${name}.logits.npy`));
  const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
  const deviation = Math.sqrt(values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length);
  const logits = values.subarray((n - 1) * m);
  const most = Math.max(...logits);
  const logSum = most + Math.log(logits.reduce((sum, x) => sum + Math.exp(x - most), 0));
  // The rule of the fixtures' README; a log probability has the error of two logits.
  const bound = (/^(gemma4|qwen3next|qwen35|qwen35moe)$/.test(name) ? 3e-4 : 1e-4) * 2 * deviation;
  return {
    path: `families/${name}.gguf`,
    prompt: readFileSync(join(families, `${name}.tokens`), "utf8").trim().split(/\s+/).map(Number),
    nVocab: m,
    logprobs: Array.from(logits, (x) => x - logSum),
    bound,
  };
}

/**
 * The JavaScript in a section of docs/web.md, each block as a function of what it takes as given.
 */
export function snippets(section) {
  const text = readFileSync(join(root, "docs/web.md")).toString();
  const begin = text.indexOf(`\n## ${section}\n`), end = text.indexOf("\n## ", begin + 1);
  const AsyncFunction = (async () => undefined).constructor;
  return [...text.slice(begin, end).matchAll(/```js\n([\s\S]*?)```/g)].map(([, code]) =>
    new AsyncFunction("wick", "console", "Wick", "text", code.replace("const wick =", "wick =")));
}
