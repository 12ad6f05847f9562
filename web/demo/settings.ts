/** What the visitor set: kept by the browser, and shown by the settings' form. */
import type { BackendName, GenerateOptions, MathMode } from "libwick";
import { byId } from "./dom.js";

export interface Settings {
  systemPrompt: string;
  /** JSON that answers follow; empty: any text. */
  jsonSchema: string;
  temperature: number;
  topP: number;
  topK: number;
  /** Tokens; 0: until the context is full. */
  maxTokens: number;
  /** 0: a new one each time. */
  seed: number;
  /** Tokens; 0: the model's, at most 4096. */
  contextLength: number;
  backend: BackendName;
  math: MathMode;
  /** 0: all. */
  threads: number;
}

const DEFAULTS: Settings = {
  systemPrompt: "", jsonSchema: "", temperature: 0.6, topP: 0.95, topK: 40, maxTokens: 1024, seed: 0,
  contextLength: 0, backend: "auto", math: "fast", threads: 0,
};

/** Settings of the engine or the model: what is loaded must be loaded again. */
const OF_ENGINE: (keyof Settings)[] = ["backend", "math", "threads"];
const KEY = "wick-settings";

export const generateOptions = (s: Settings): GenerateOptions => ({
  temperature: s.temperature, topP: s.topP, topK: s.topK, maxTokens: s.maxTokens, seed: s.seed,
  ...(s.jsonSchema.trim() !== "" && { jsonSchema: s.jsonSchema }),
});

export const contextOptions = (s: Settings): { contextLength?: number } =>
  (s.contextLength > 0 ? { contextLength: s.contextLength } : {});

/** Which of two settings need more than the next message. */
export function compareSettings(a: Settings, b: Settings): { engine: boolean; context: boolean } {
  return {
    engine: OF_ENGINE.some((name) => a[name] !== b[name]),
    context: a.contextLength !== b.contextLength,
  };
}

type Field = HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;

/** The settings and their form, which tells when the visitor has closed it. */
export class SettingsPanel {
  readonly #dialog = byId<HTMLDialogElement>("settings");
  readonly #form = byId<HTMLFormElement>("settings-form");
  #settings = load();

  constructor(onClose: (settings: Settings) => void) {
    byId("settings-button").addEventListener("click", () => this.#open());
    byId("settings-reset").addEventListener("click", () => {
      this.#fill(DEFAULTS);
      this.#take();
    });
    this.#form.addEventListener("input", () => this.#take());
    this.#dialog.addEventListener("click", (event) => {
      if (event.target === this.#dialog) this.#dialog.close();
    });
    this.#dialog.addEventListener("close", () => onClose(this.#settings));
  }

  get settings(): Settings {
    return this.#settings;
  }

  change(changed: Partial<Settings>): void {
    this.#settings = { ...this.#settings, ...changed };
    save(this.#settings);
  }

  #open(): void {
    this.#fill(this.#settings);
    byId("threads-hint").textContent = crossOriginIsolated
      ? "0: all of this device."
      : "One: this page is not cross-origin isolated, which browsers ask of pages with threads.";
    byId<HTMLInputElement>("set-threads").disabled = !crossOriginIsolated;
    this.#dialog.showModal();
  }

  #field(name: string): Field {
    return this.#form.elements.namedItem(name) as Field;
  }

  #fill(settings: Settings): void {
    for (const [name, value] of Object.entries(settings)) this.#field(name).value = String(value);
    this.#showValues();
  }

  /** At once: the event of a closed dialog may come after a question that was sent since. */
  #take(): void {
    this.#settings = this.#read();
    save(this.#settings);
    this.#showValues();
  }

  /** What cannot be a value becomes the default. */
  #read(): Settings {
    const read = Object.entries(DEFAULTS).map(([name, standard]) => {
      const field = this.#field(name);
      if (typeof standard === "string") return [name, field.value];
      return [name, field.value !== "" && field.checkValidity() ? Number(field.value) : standard];
    });
    return Object.fromEntries(read) as Settings;
  }

  #showValues(): void {
    for (const output of this.#form.querySelectorAll("output")) {
      const field = byId<HTMLInputElement>(output.htmlFor.value);
      output.value = Number(field.value).toFixed(2);
    }
  }
}

function load(): Settings {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Settings>;
    return { ...DEFAULTS, ...stored };
  } catch {
    return { ...DEFAULTS };
  }
}

function save(settings: Settings): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(settings));
  } catch {
    // A browser that keeps nothing: the settings hold until the page is left.
  }
}
