// A service worker with engines of its own: a message with a port asks what follows on a prompt.
import { Wick } from "../../web/dist/service-worker.js";
import { Wick as CpuWick } from "../../web/dist/cpu-service-worker.js";

async function generate(Class, address, prompt, maxTokens) {
  const wick = await Class.open({ backend: "cpu", math: "exact" });
  const model = await wick.load(address);
  const session = await model.session({ temperature: 0, maxTokens });
  const tokens = [];
  for await (const { id } of session.generate(prompt)) tokens.push(id);
  await wick.close();
  return tokens;
}

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("message", ({ data: { address, prompt, maxTokens }, ports: [port] }) => {
  Promise.all([Wick, CpuWick].map((Class) => generate(Class, address, prompt, maxTokens)))
    .then((result) => port.postMessage({ result }), (error) => port.postMessage({
      error: String(error?.stack ?? error) }));
});
