/** The script of a worker that serves one thread of the module, see thread_workers.ts. */
import { importInNode } from "./files.js";
import type { ThreadReply, ThreadStart } from "./thread_workers.js";

interface Scope {
  postMessage(reply: ThreadReply): void;
  onmessage: ((event: { data: MessagePort }) => void) | null;
}

/** A thread of the module calls no imports except the one that says how long it may wait. */
function makeImports({ module, memory }: ThreadStart): WebAssembly.Imports {
  const imports: WebAssembly.Imports = { env: { memory } };
  for (const { module: from, name, kind } of WebAssembly.Module.imports(module)) {
    if (kind !== "function") continue;
    (imports[from] ??= {})[name] = () => {
      throw new Error(`a thread calls ${name}`);
    };
  }
  imports["wick"]!["wait_limit_ns"] = () => -1;
  return imports;
}

async function serve(start: ThreadStart, reply: (reply: ThreadReply) => void): Promise<void> {
  const { module, memory, thread, stackEnd } = start;
  const { exports } = await WebAssembly.instantiate(module, makeImports(start));
  (exports["__stack_pointer"] as WebAssembly.Global<"i32">).value = stackEnd;
  reply(null);
  try {
    (exports["thread_serve"] as (thread: number) => never)(thread);
  } catch (reason) {
    Atomics.store(new Int32Array(memory.buffer), thread / 4, -1);
    throw reason;
  }
}

function listen(scope: Scope): void {
  scope.onmessage = ({ data: port }) => {
    const reply = (text: ThreadReply) => scope.postMessage(text);
    port.onmessage = ({ data }: MessageEvent<ThreadStart>) =>
      void serve(data, reply).catch((reason: unknown) => reply(String(reason)));
    port.onmessageerror = () => reply("the module cannot be passed on to it");
  };
}

// No await: bundlers make classic scripts of workers.
if (typeof postMessage === "function") listen(globalThis as unknown as Scope);
else void importInNode<{ parentPort: Scope }>("node:worker_threads")
  .then(({ parentPort }) => listen(parentPort));
