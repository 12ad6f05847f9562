/** The page without a network: a service worker keeps its files, and a new version is offered. */
import { byId } from "./dom.js";

function offer(waiting: ServiceWorker): void {
  byId("update").hidden = false;
  byId("update-button").addEventListener("click", () => {
    navigator.serviceWorker.addEventListener("controllerchange", () => location.reload());
    waiting.postMessage("take over");
  }, { once: true });
}

/** Where browsers or hosts do not allow it, the page works with the network alone. */
export async function keepForOffline(): Promise<void> {
  if (!navigator.serviceWorker) return;
  try {
    const registration = await navigator.serviceWorker.register("sw.js");
    if (registration.waiting) offer(registration.waiting);
    registration.addEventListener("updatefound", () => {
      const found = registration.installing;
      found?.addEventListener("statechange", () => {
        if (found.state === "installed" && navigator.serviceWorker.controller) offer(found);
      });
    });
  } catch (reason) {
    console.info(`The page is not kept for use without a network: ${String(reason)}`);
  }
}
