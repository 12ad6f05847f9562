/** The worker's script: an engine that a page talks to by messages. */
import { Engine } from "./engine.js";
import { toPlain, WickError } from "./errors.js";
import type { Reply, Request } from "./messages.js";
import { PageThreads, Server } from "./server.js";

interface Scope {
  postMessage(reply: Reply, transfer: Transferable[]): void;
  onmessage: ((event: MessageEvent<Request>) => void) | null;
  onmessageerror: (() => void) | null;
}

const scope = globalThis as unknown as Scope;
let server: Server | undefined;

const send = (reply: Reply, transfer: Transferable[] = []) => scope.postMessage(reply, transfer);
const threadHost = new PageThreads(send);

async function open({ options, baseUrl }: Extract<Request, { kind: "open" }>): Promise<void> {
  try {
    const engine = await Engine.open(options, {
      baseUrl,
      gpu: navigator.gpu,
      threadHost,
      notify: (notice) => send({ kind: "notice", notice }),
    });
    server = new Server(engine, send);
    send({ kind: "opened" });
  } catch (reason) {
    send({ kind: "failed", error: toPlain(reason) });
  }
}

scope.onmessage = ({ data }) => {
  if (data.kind === "open") void open(data);
  else if (data.kind === "thread") threadHost.handle(data);
  else void server?.handle(data);
};
scope.onmessageerror = () => send({ kind: "failed", error: toPlain(new WickError("OUT_OF_MEMORY",
  "the worker cannot take what it was given; open the engine again")) });
