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

/** What a module has doors to: models alone, with them the APIs, or tensors and verification. */
export type ModuleKind = "text" | "api" | "tensors";
type ModuleForm = "simd" | "threads";
export type ModuleFiles = Record<ModuleKind, Record<ModuleForm, ModuleFile>>;

/** Which of the package's modules is loaded, and from where. */
export interface ModuleChoice {
  kind: ModuleKind;
  /** Where the package's files lie; undefined: where they were built to. */
  baseUrl: string | undefined;
  /** Gives up fetching it. */
  signal?: AbortSignal;
}

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

async function compile(url: URL, signal: AbortSignal | undefined): Promise<WebAssembly.Module> {
  if (url.protocol === "file:") return WebAssembly.compile(await readNode(url));
  const response = await fetch(url, signal && { signal });
  if (!response.ok) throw new Error(`the server answers ${response.status}`);
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("text/html")) throw new Error("the server sends a page in its place");
  // Servers that do not know the type would be refused by compileStreaming.
  return type.startsWith("application/wasm") ? WebAssembly.compileStreaming(response)
    : WebAssembly.compile(await response.arrayBuffer());
}

/** A file of the package that is not where it is looked for, and what to do. */
export const missingFile = (url: URL | string, cause: unknown): WickError =>
  new WickError("IO", `${url} does not load: ${messageOf(cause)}. The files of libwick/dist (*.js, `
    + "*.wasm) belong in one folder: where a bundler leaves them out, as esbuild does, copy them "
    + "beside the bundle, or give their folder as 'baseUrl'", { cause });

/** Compiles a module of the package. */
export async function loadModule({ kind, baseUrl, signal }: ModuleChoice,
                                 form: ModuleForm): Promise<WebAssembly.Module> {
  const file = MODULES[kind][form];
  const url = baseUrl === undefined ? file.url() : new URL(file.name, baseUrl);
  try {
    return await compile(url, signal);
  } catch (cause) {
    throw missingFile(url, cause);
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

/** The address of a worker's script, unless a bundler has renamed it. */
export const workerUrl = (baseUrl: string | undefined, file: WorkerFile): URL =>
  new URL(file.name, baseUrl ?? import.meta.url);

/** Whether the package's files come from another origin, as all do in a sandboxed frame. */
export const isForeign = (baseUrl: string | undefined): boolean =>
  globalThis.origin !== undefined
  && new URL(baseUrl ?? import.meta.url).origin !== globalThis.origin;

/** Of scripts by their texts. Each is made once: a Blob's address holds it until the page goes. */
const addresses = new Map<string, string>();

/** The address of a script that consists of this text; Chromium refuses Blobs without an origin. */
function addressOf(script: string): string {
  const type = "text/javascript";
  if (globalThis.origin === "null") return `data:${type},${encodeURIComponent(script)}`;
  const address = addresses.get(script) ?? URL.createObjectURL(new Blob([script], { type }));
  addresses.set(script, address);
  return address;
}

/**
 * Starts a worker of the package in a page. No script of another origin begins one, but a script of
 * the page's own may import it.
 */
export function makeWorker(baseUrl: string | undefined, file: WorkerFile): Worker {
  const url = workerUrl(baseUrl, file);
  const begin = (address: string | URL) => new Worker(address, { type: "module" });
  if (isForeign(baseUrl)) return begin(addressOf(`import ${JSON.stringify(url)};`));
  return baseUrl === undefined ? file.open() : begin(url);
}
