/** What the page has open: an engine, a model and its session, by the settings they came with. */
import { Wick, WickError } from "libwick";
import type { Capabilities, ChatMessage, Model, ModelSource, Preflight, Progress, Session } from "libwick";
import { compareSettings, contextOptions } from "./settings.js";
import type { Settings } from "./settings.js";
import { asFunctions } from "./tools.js";

/** A model that the visitor can open. */
export interface Choice {
  name: string;
  source: ModelSource;
  /** One line about it. */
  detail?: string;
  /** Of the file, where that is known before it is opened. */
  bytes?: number;
  sha256?: string;
  /** Where it comes from; a file has none. */
  url?: string;
  suggestions?: string[];
  /** An adapter of the model, a GGUF file. */
  adapter?: Uint8Array;
}

export interface LoadRequest {
  signal: AbortSignal;
  onProgress(progress: Progress): void;
  /** Also what does not fit. */
  force: boolean;
}

/** What was opened, and all that belongs to it. */
interface Opened {
  choice: Choice;
  model: Model;
  /** While another one comes in its place: the one to come. */
  session: Promise<Session>;
  /** It has a template for conversations; else it goes on with a text. */
  canChat: boolean;
  /** Its template says which tools there are. */
  knowsTools: boolean;
  /** It has a place for a system message. */
  knowsSystem: boolean;
  /** The visitor knows that it does not fit. */
  isForced: boolean;
}

export class Host {
  #wick: Wick | undefined;
  /** It can take adapters. */
  #hasTensors = false;
  #settings: Settings | undefined;
  #opened: Opened | undefined;
  readonly #onLost: (message: string) => void;

  constructor(onLost: (message: string) => void) {
    this.#onLost = onLost;
  }

  get opened(): Opened | undefined {
    return this.#opened;
  }

  get capabilities(): Capabilities | undefined {
    return this.#wick?.capabilities();
  }

  /** The engine by these settings, for this choice; another one is closed with its model. */
  async engine(settings: Settings, { adapter }: Choice): Promise<Wick> {
    const isSame = this.#settings && !compareSettings(this.#settings, settings).engine;
    if (this.#wick && isSame && (this.#hasTensors || !adapter)) return this.#wick;
    await this.closeEngine();
    const { backend, math, threads } = settings;
    this.#settings = settings;
    this.#hasTensors = adapter !== undefined;
    this.#wick = await Wick.open({ backend, math, tensors: this.#hasTensors,
      ...(threads > 0 && { threads }), onDeviceLost: this.#onLost });
    return this.#wick;
  }

  async preflight(choice: Choice, settings: Settings, signal: AbortSignal): Promise<Preflight> {
    const wick = await this.engine(settings, choice);
    return wick.preflight(choice.source, { ...contextOptions(settings), signal });
  }

  /** Opens a model in place of the one before, which gives its memory back first. */
  async load(choice: Choice, settings: Settings, { signal, onProgress, force }: LoadRequest) {
    const wick = await this.engine(settings, choice);
    await this.closeModel();
    const session = contextOptions(settings);
    const { sha256 } = choice;
    const model = await wick.load(choice.source,
      { signal, onProgress, force, session, ...(sha256 && { sha256 }) });
    try {
      if (choice.adapter) await model.addAdapter(choice.adapter);
      const canChat = await hasTemplate(model);
      const knowsTools = canChat && await reads(model, [QUESTION], { tools: TOOLS });
      const knowsSystem = canChat && await reads(model, [BRIEF, QUESTION]);
      const first = await model.session(session);
      this.#opened =
        { choice, model, canChat, knowsTools, knowsSystem, isForced: force, session: Promise.resolve(first) };
      this.#settings = settings;
    } catch (reason) {
      await model.close();
      throw reason;
    }
  }

  /** Replaces the session by an empty one with the seed and length that are set, else as before. */
  async renewSession(settings: Settings): Promise<void> {
    const opened = this.#opened;
    if (!opened) return;
    const { model, session: before } = opened;
    let problem: unknown;
    const renew = async (): Promise<Session> => {
      await before.then((session) => session.close(), () => undefined); // may have failed
      try {
        const session = await model.session(contextOptions(settings));
        this.#settings = { ...this.#settings!, contextLength: settings.contextLength };
        return session;
      } catch (reason) {
        problem = reason;
        return model.session(contextOptions(this.#settings!));
      }
    };
    opened.session = renew();
    await opened.session;
    if (problem !== undefined) throw problem;
  }

  /** What the settings ask for that is not open so. */
  changes(settings: Settings): { engine: boolean; context: boolean } {
    return this.#settings ? compareSettings(this.#settings, settings)
      : { engine: false, context: false };
  }

  /** Bytes in use; on a CPU all of it is the module's own. */
  async memory(): Promise<{ device: number; module: number } | undefined> {
    const wick = this.#wick;
    if (!wick) return undefined;
    const { bufferBytes, poolBytes, heapBytes } = await wick.stats();
    const isGpu = wick.capabilities().device.backend === "webgpu";
    return { device: isGpu ? Math.max(bufferBytes, poolBytes) : 0, module: heapBytes };
  }

  async closeModel(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    await opened?.model.close();
  }

  async closeEngine(): Promise<void> {
    const wick = this.#wick;
    this.#wick = undefined;
    this.#opened = undefined;
    await wick?.close();
  }
}

const QUESTION: ChatMessage = { role: "user", content: "Hello" };
const BRIEF: ChatMessage = { role: "system", content: "Be brief." };
const TOOLS = asFunctions([{ name: "get", description: "", code: "",
  parameters: { type: "object", properties: {} } }]);

async function hasTemplate(model: Model): Promise<boolean> {
  try {
    await model.chatTokens([QUESTION]);
    return true;
  } catch (reason) {
    if (reason instanceof WickError && reason.code === "NOT_FOUND") return false;
    throw reason;
  }
}

/** The template has a place for what is there beside the question; it may refuse it. */
async function reads(model: Model, messages: ChatMessage[], options = {}): Promise<boolean> {
  const without = await model.chatTokens([QUESTION]);
  const given = await model.chatTokens(messages, options).catch(() => without);
  return given.length !== without.length;
}
