// The Worker of a page, by a thread of Node that runs the same script.
import { Worker } from "node:worker_threads";

const BOOTSTRAP = `
const { parentPort, workerData } = require("node:worker_threads");
globalThis.navigator ??= {};
globalThis.postMessage = (data, transfer) => parentPort.postMessage(data, transfer);
import(workerData).then(() =>
  parentPort.on("message", (data) => globalThis.onmessage({ data })));`;

export class PageWorker {
  #thread;

  constructor(url) {
    this.#thread = new Worker(BOOTSTRAP, { eval: true, workerData: String(url) });
    this.#thread.on("message", (data) => this.onmessage({ data }));
    this.#thread.on("error", (error) => this.onerror({ message: error.message }));
  }

  postMessage(data, transfer) {
    this.#thread.postMessage(data, transfer);
  }

  terminate() {
    void this.#thread.terminate();
  }
}
