// usage: node tests/web/generate.mjs MODULE.wasm MODEL.gguf PROMPT [TOKENS] [cpu|webgpu]
// Writes what the wasm module makes of a prompt in Node. webgpu needs the npm package "webgpu"
// beside web/ (npm install --no-save webgpu) and web/dist (npm run build).
import { readFileSync } from "node:fs";
import { Gpus } from "../../web/dist/gpu.js";
import { Memory } from "../../web/dist/memory.js";

const [module, model, prompt, limit = "64", backend = "cpu"] = process.argv.slice(2);
const PENDING = 1;
const EVENT_PENDING = 0, EVENT_TOKEN = 3, EVENT_END = 4;

let api;
if (backend === "webgpu") {
  const { create, globals } = await import("../../web/node_modules/webgpu/index.js");
  Object.assign(globalThis, globals);
  api = create([]);
}
let memory;
const gpus = new Gpus(api, () => memory);
await gpus.find();
const wick = {
  clock_ns: () => performance.now() * 1e6,
  entropy: () => Math.floor(Math.random() * 2 ** 52),
};
const { instance } = await WebAssembly.instantiate(readFileSync(module),
                                                   { wick, gpu: gpus.imports() });
const doors = instance.exports;
memory = new Memory(doors.memory);

const put = (bytes) => {
  const at = doors.alloc(bytes.length);
  memory.bytes(at, bytes.length).set(bytes);
  return at;
};
const checked = (pointer) => {
  if (pointer === 0) throw new Error(memory.text(doors.error_text()));
  return pointer;
};
const turn = () =>
  gpus.isBusy ? gpus.activity() : new Promise((resolve) => setImmediate(resolve));
const finished = async (poll) => {
  while (poll() === PENDING) await turn();
};

const opening = checked(doors.device_open(backend === "webgpu" ? 2 : 1, 0));
await finished(() => doors.device_poll(opening));
const device = checked(doors.device_finish(opening));
const file = readFileSync(model);
const loading = checked(doors.model_open(device, put(file), file.length));
await finished(() => doors.model_poll(loading));
const session = checked(doors.session_open(checked(doors.model_finish(loading))));
if (doors.session_append(session, put(new TextEncoder().encode(`${prompt}\0`))) < 0)
  throw new Error("the prompt was refused");

const event = doors.alloc(16);
let n = 0;
const begin = performance.now();
while (n < Number(limit)) {
  const status = doors.session_step(session, event);
  if (status < 0) throw new Error(`status ${status}`);
  const [kind, , text, size] = memory.words(event, 4);
  if (kind === EVENT_PENDING) await turn();
  if (kind === EVENT_TOKEN && ++n) process.stdout.write(memory.text(text, size));
  if (kind === EVENT_END) break;
}
const seconds = (performance.now() - begin) / 1000;
console.error(`\n${n} tokens in ${seconds.toFixed(2)} s, ${memory.size >> 20} MiB`);
process.exit(0);
