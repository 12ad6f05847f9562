/** A module of the engine with the device that it has opened. */
import { isNode } from "./files.js";
import type { ModuleKind } from "./files.js";
import type { EngineOptions, EngineParts } from "./engine.js";
import { Module } from "./module.js";
import type { LogLevel } from "./types.js";

const LOG_LEVELS: LogLevel[] = ["debug", "info", "warning"];
/** In the page's own thread a slice of work must leave time to draw. */
const PAGE_SLICE_US = 6000, WORKER_SLICE_US = 20000;

export class Core {
  readonly module: Module;
  readonly device: number;

  /** cores: all that take of the same memory, now and later; it becomes one of them. signal: gives
   * up fetching the module. */
  static async open(kind: ModuleKind, options: EngineOptions, parts: EngineParts,
                    cores: Core[], signal?: AbortSignal): Promise<Core> {
    let core: Core | undefined;
    const others = () => cores.filter((other) => other !== core);
    const { isWorker, gpuOptions, memory, tensors: _, api: __, ...given } = options;
    const { backend = "auto", math = "fast" } = given;
    const module = await Module.load({
      kind,
      baseUrl: parts.baseUrl,
      ...(signal && { signal }),
      backend,
      gpu: backend === "cpu" ? undefined : parts.gpu,
      isLowPower: gpuOptions?.lowPower ?? false,
      threads: given.threads,
      threadHost: parts.threadHost,
      mayWait: isWorker || isNode(),
      memory,
      taken: () => others().reduce((sum, other) => sum + other.module.memory.size, 0),
      log: (level, message) => parts.notify({ kind: "log", level: LOG_LEVELS[level]!, message }),
      lost: (message) => parts.notify({ kind: "lost", message }),
    });
    const text = JSON.stringify({
      ...given, backend, math, ...gpuOptions,
      sliceMicroseconds: isWorker ? WORKER_SLICE_US : PAGE_SLICE_US,
    });
    const opening = module.pointer("device_open", text);
    await module.finish(() => module.call("device_poll", opening));
    core = new Core(module, module.pointer("device_finish", opening));
    cores.push(core);
    return core;
  }

  private constructor(module: Module, device: number) {
    this.module = module;
    this.device = device;
  }

  /** What a door says of the device, as the text of a JSON object. */
  record<T>(door: string): T {
    return this.module.record<T>(door, this.device);
  }

  /** Ends what waits; the device is closed when releaseAll has released what is on it. */
  async close(releaseAll?: () => Promise<void>): Promise<void> {
    await this.module.stop();
    try {
      if (this.module.isBroken) return;
      await releaseAll?.();
      this.module.call("device_close", this.device);
    } finally {
      this.module.end();
    }
  }
}
