/**
 * The package's own files: beside its scripts, or where bundlers of applications put them, or where
 * the caller says. In the browser by fetch, in Node from the disk.
 */
import { messageOf, WickError } from "./errors.js";
import { MODULES } from "./module_files.js";

/** A file by its name in the package's folder, and by the address where it was built to. */
interface ModuleFile {
  name: string;
  url(): URL;
}

export type ModuleFiles = Record<"simd" | "threads", ModuleFile>;

export interface WorkerFile {
  name: string;
  open(): Worker;
}

export const isNode = (): boolean =>
  typeof (globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node
  === "string";

/** A module that only Node has: its name is none for bundlers, which would look for it. */
export const importInNode = async <T>(name: string): Promise<T> =>
  (await import(/* @vite-ignore */ name)) as T;

async function readNode(url: URL): Promise<Uint8Array<ArrayBuffer>> {
  const { readFile } = await importInNode<{
    readFile(url: URL): Promise<Uint8Array<ArrayBuffer>>;
  }>("node:fs/promises");
  return readFile(url);
}

async function compile(url: URL): Promise<WebAssembly.Module> {
  if (url.protocol === "file:") return WebAssembly.compile(await readNode(url));
  const response = await fetch(url);
  if (!response.ok) throw new Error(`the server answers ${response.status}`);
  // Servers that do not know the type would be refused by compileStreaming.
  const isTyped = response.headers.get("content-type")?.startsWith("application/wasm");
  return isTyped ? WebAssembly.compileStreaming(response)
    : WebAssembly.compile(await response.arrayBuffer());
}

/** Compiles a module of the package; baseUrl: where it lies, undefined: where it was built to. */
export async function loadModule(baseUrl: string | undefined,
                                 which: keyof ModuleFiles): Promise<WebAssembly.Module> {
  const file = MODULES[which];
  const url = baseUrl === undefined ? file.url() : new URL(file.name, baseUrl);
  try {
    return await compile(url);
  } catch (cause) {
    throw new WickError("IO", `${url} does not load: ${messageOf(cause)}`, { cause });
  }
}

/**
 * Why no worker is started here, as the end of a sentence; empty: one may be. In Firefox (seen in
 * 153) a worker that starts another one may wait in its constructor for ever: the wake-up, when the
 * main thread has registered the new worker, may go to that one instead.
 */
export const workerObstacle = (): string =>
  "WorkerGlobalScope" in globalThis && navigator.userAgent.includes("Firefox/")
    ? ": a worker of Firefox may hang where it starts another one; open the engine in the page"
    : "";

/** The address of a worker's script for Node. */
export const workerUrl = (baseUrl: string | undefined, file: WorkerFile): URL =>
  new URL(file.name, baseUrl ?? import.meta.url);

/** Starts a worker of the package in a page. */
export const makeWorker = (baseUrl: string | undefined, file: WorkerFile): Worker =>
  baseUrl === undefined ? file.open() : new Worker(workerUrl(baseUrl, file), { type: "module" });
