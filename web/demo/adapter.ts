/** The last adapter that was trained here, kept for the chat in the browser's cache. */

const CACHE = "wick-demo-adapter", FILE = "adapter.gguf", MODEL = "X-Model";

/** model: the address of the model that it is for. */
export async function keepAdapter(model: string, adapter: Uint8Array<ArrayBuffer>): Promise<void> {
  const cache = await caches.open(CACHE);
  await cache.put(FILE, new Response(adapter, { headers: { [MODEL]: model } }));
}

/** undefined: there is none. */
export async function keptAdapter(): Promise<{ model: string; adapter: Uint8Array } | undefined> {
  const response = await caches.open(CACHE).then((cache) => cache.match(FILE));
  const model = response?.headers.get(MODEL);
  if (!response || !model) return undefined;
  return { model, adapter: new Uint8Array(await response.arrayBuffer()) };
}
