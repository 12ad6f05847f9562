/**
 * The page's WebGPU for the module: the imports of src/backend/webgpu/gpu/gpu_web_host.h, in whose
 * words the numbers here are explained. Nothing blocks: what takes time becomes a state that the
 * module asks for, and `activity` wakes whoever waits for one to change.
 */
import { messageOf } from "./errors.js";
import { isNode } from "./files.js";
import type { Memory } from "./memory.js";
import { Waiting } from "./waiting.js";

/** WICK_WEBGPU_*. */
const F16 = 1, SUBGROUPS = 2, DOT4 = 4, TIMESTAMPS = 8;
/** How a thing stands. */
const PENDING = 0, READY = 1, FAILED = 2;
/** What a poll returns. */
const NOTHING = 0, LOST = 1, WRONG = 2, NO_MEMORY = 3;
const COMMAND_WORDS = 7;
const MAX_TIMESTAMPS = 4096;
/** Those that a device is opened with, in the order in which the module reads them. */
const LIMITS = [
  "maxBufferSize", "maxStorageBufferBindingSize", "maxStorageBuffersPerShaderStage",
  "minStorageBufferOffsetAlignment", "minUniformBufferOffsetAlignment",
  "maxComputeWorkgroupStorageSize", "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX", "maxComputeWorkgroupSizeY", "maxComputeWorkgroupSizeZ",
  "maxComputeWorkgroupsPerDimension",
] as const;
/** Milliseconds within which a browser reports a lost device after one of its errors. */
const LOSS_MS = 250;

interface Compiling {
  state: number;
  message: string;
  pipeline?: GPUComputePipeline;
}

interface Mapping {
  buffer: GPUBuffer;
  size: number;
  isMapped: boolean;
}

type Thing = GPUBuffer | GPUBindGroupLayout | GPUBindGroup | Compiling;

class Device {
  /** Features that it is opened without, as bits. */
  readonly without: number;
  state = PENDING;
  message = "";
  adapter?: GPUAdapter;
  device?: GPUDevice;
  readonly things: (Thing | undefined)[] = [undefined];
  readonly freed: number[] = [];
  readonly mappings = new Map<number, Mapping>();
  submitted = 0;
  done = 0;
  isLost = false;
  /** Failures of which it is not known yet whether the device is lost. */
  nDoubts = 0;
  isClosed = false;
  readonly events: { kind: number; message: string }[] = [];
  queries?: GPUQuerySet;
  resolved?: GPUBuffer;

  constructor(without: number) {
    this.without = without;
  }

  add(thing: Thing): number {
    const id = this.freed.pop() ?? this.things.length;
    this.things[id] = thing;
    return id;
  }
}

const toText = (reason: unknown): string =>
  messageOf(reason).replace(/\s+/g, " ").trim();

/** The kind of adapter that a page is given, and why it is none. */
interface Found {
  adapter?: GPUAdapter;
  isSoftware: boolean;
  reason: string;
}

const isSoftware = (adapter: GPUAdapter): boolean => {
  const info = adapter.info as GPUAdapterInfo & { isFallbackAdapter?: boolean };
  return info?.isFallbackAdapter
    ?? (adapter as GPUAdapter & { isFallbackAdapter?: boolean }).isFallbackAdapter ?? false;
};

const preference = (isLowPower: boolean): GPURequestAdapterOptions =>
  ({ powerPreference: isLowPower ? "low-power" : "high-performance" });

/**
 * Firefox looks at its GPU when it is given something to do, otherwise every 100 ms: while a caller
 * waits, it is given empty submits.
 */
class Nudger {
  readonly #channel = new MessageChannel();
  readonly #nudge: () => boolean;
  #isRunning = false;

  /** nudge returns false when no caller waits any more. */
  constructor(nudge: () => boolean) {
    this.#nudge = nudge;
    // Timers that timers set wait for 4 ms; those that messages set do not.
    this.#channel.port1.onmessage = () => setTimeout(() => this.#tick(), 1);
  }

  static isNeeded(): boolean {
    const { navigator } = globalThis as { navigator?: { userAgent?: string } };
    return navigator?.userAgent?.includes("Firefox/") ?? false;
  }

  start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#channel.port2.postMessage(0);
  }

  #tick(): void {
    this.#isRunning = false;
    if (this.#nudge()) this.start();
  }
}

export class Gpus extends Waiting {
  readonly #gpu: GPU | undefined;
  readonly #memory: () => Memory;
  readonly #onLost: (message: string) => void;
  readonly #devices: (Device | undefined)[] = [undefined];
  #found: Found = { isSoftware: false, reason: "WebGPU has not been looked for" };
  readonly #nudger = Nudger.isNeeded() ? new Nudger(() => this.#nudge()) : undefined;

  constructor(gpu: GPU | undefined, memory: () => Memory,
              onLost: (message: string) => void = () => undefined) {
    super();
    this.#gpu = gpu;
    this.#memory = memory;
    this.#onLost = onLost;
  }

  /** Looks for an adapter, before the module asks whether there is one. */
  async find(isLowPower: boolean): Promise<Found> {
    this.#found = { isSoftware: false, reason: "" };
    if (!this.#gpu) {
      this.#found.reason = (globalThis as { isSecureContext?: boolean }).isSecureContext === false
        ? "WebGPU needs a secure page: https, or localhost"
        : isNode() ? "Node has WebGPU by the npm package 'webgpu', which is not installed"
          : "this browser has no WebGPU, or it is switched off";
      return this.#found;
    }
    try {
      const adapter = await this.#gpu.requestAdapter(preference(isLowPower));
      if (adapter) this.#found = { adapter, isSoftware: isSoftware(adapter), reason: "" };
      else this.#found.reason = "the browser has WebGPU, but offers no GPU: its driver may be "
        + "blocked, or hardware acceleration switched off";
    } catch (reason) {
      this.#found.reason = `WebGPU finds no adapter: ${toText(reason)}`;
    }
    return this.#found;
  }

  /** Resolves when something on a GPU has changed. */
  override activity(): Promise<void> {
    this.#nudger?.start();
    return super.activity();
  }

  /** Whether something is under way whose end wakes `activity`. */
  get isBusy(): boolean {
    return this.#devices.some((d) => d !== undefined && !d.isLost && (d.state === PENDING
      || d.nDoubts > 0 || d.done < d.submitted || [...d.mappings.values()].some((m) => !m.isMapped)
      || d.things.some((t) => t !== undefined && "state" in t && t.state === PENDING)));
  }

  /** As if the driver had taken all devices away; for tests. */
  lose(): void {
    for (const d of this.#devices) d?.device?.destroy();
  }

  #nudge(): boolean {
    for (const d of this.#devices) if (d?.device && !d.isLost) d.device.queue.submit([]);
    return this.isAwaited;
  }

  async #open(d: Device, flags: number): Promise<void> {
    // An adapter opens one device; the one that find() saw serves first.
    const seen = this.#found.adapter;
    this.#found.adapter = undefined;
    const adapter = seen ?? (await this.#gpu?.requestAdapter(preference((flags & 1) !== 0)))
      ?? undefined;
    if (!adapter) throw new Error("there is no adapter of WebGPU");
    const has = (feature: string) => adapter.features.has(feature as GPUFeatureName);
    const wanted: GPUFeatureName[] = [];
    if (!(d.without & F16) && has("shader-f16")) wanted.push("shader-f16");
    if (!(d.without & SUBGROUPS) && has("subgroups")) wanted.push("subgroups" as GPUFeatureName);
    if (!(d.without & TIMESTAMPS) && has("timestamp-query")) wanted.push("timestamp-query");
    const limits = flags & 2 ? [] : LIMITS.map((name) => [name, adapter.limits[name]]);
    const device = await adapter.requestDevice({
      requiredFeatures: wanted,
      requiredLimits: Object.fromEntries(limits),
    });
    if (d.isClosed) {
      device.destroy();
      return;
    }
    d.adapter = adapter;
    d.device = device;
    device.addEventListener("uncapturederror", (event) => {
      const { error } = event as GPUUncapturedErrorEvent;
      const kind = error instanceof GPUOutOfMemoryError ? NO_MEMORY : WRONG;
      void this.#complain(d, kind, toText(error.message));
    });
    void device.lost.then((info) => {
      if (d.isClosed) return;
      d.isLost = true;
      const message = toText(info.message || info.reason);
      d.events.push({ kind: LOST, message });
      this.#onLost(message);
      this.stir();
    });
  }

  /** What fails may be the first sign of a lost device: nothing counts until that is known. */
  async #complain(d: Device, kind: number, message: string): Promise<void> {
    d.nDoubts++;
    const soon = new Promise((resolve) => setTimeout(resolve, LOSS_MS));
    await Promise.race([d.device!.lost, soon]);
    d.nDoubts--;
    if (!d.isLost) d.events.push({ kind, message });
    this.stir();
  }

  #describe(d: Device): number[] {
    const { features, limits } = d.device!;
    const info = d.adapter!.info as GPUAdapterInfo
      & { subgroupMinSize?: number; subgroupMaxSize?: number };
    const language = this.#gpu!.wgslLanguageFeatures;
    const has = (feature: string) => features.has(feature as GPUFeatureName);
    const bits = (has("shader-f16") ? F16 : 0) | (has("subgroups") ? SUBGROUPS : 0)
      | (language?.has("packed_4x8_integer_dot_product") ? DOT4 : 0)
      | (has("timestamp-query") ? TIMESTAMPS : 0);
    return [
      bits & ~d.without, isSoftware(d.adapter!) ? 1 : 0, ...LIMITS.map((name) => limits[name]),
      info?.subgroupMinSize ?? 0, info?.subgroupMaxSize ?? 0,
    ];
  }

  async #compile(d: Device, thing: Compiling, label: string, code: string, entryPoint: string,
                 layout: GPUBindGroupLayout): Promise<void> {
    const device = d.device!;
    device.pushErrorScope("validation");
    const module = device.createShaderModule({ label, code });
    const scope = device.popErrorScope();
    try {
      thing.pipeline = await device.createComputePipelineAsync({
        label,
        layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
        compute: { module, entryPoint },
      });
      thing.state = READY;
    } catch (reason) {
      const { messages } = await module.getCompilationInfo().catch(() => ({ messages: [] }));
      const first = messages.find((m) => m.type === "error");
      const line = first && code.split("\n")[first.lineNum - 1]?.trim().slice(0, 79);
      thing.message = first ? `, line ${first.lineNum}, "${line}": ${toText(first.message)}`
        : `: ${toText(reason)}`;
      thing.state = FAILED;
    }
    await scope.catch(() => null);
    this.stir();
  }

  #submit(d: Device, at: number, n: number): void {
    const device = d.device!;
    const words = this.#memory().words(at, n * COMMAND_WORDS);
    const encoder = device.createCommandEncoder();
    let pass: GPUComputePassEncoder | undefined;
    let set: GPUComputePipeline | undefined;
    const end = () => {
      pass?.end();
      pass = set = undefined;
    };
    for (let i = 0; i < words.length; i += COMMAND_WORDS) {
      const kind = words[i]!;
      if (kind === 0) {
        end();
        const to = d.things[words[i + 2]!] as GPUBuffer;
        const size = words[i + 5]! * 4;
        if (words[i + 1] === 0) {
          encoder.clearBuffer(to, words[i + 4]! * 4, size);
        } else {
          const from = d.things[words[i + 1]!] as GPUBuffer;
          encoder.copyBufferToBuffer(from, words[i + 3]! * 4, to, words[i + 4]! * 4, size);
        }
        continue;
      }
      if (kind > 1) {
        end();
        pass = encoder.beginComputePass({
          timestampWrites: {
            querySet: this.#queries(d),
            beginningOfPassWriteIndex: 2 * (kind - 1) - 2,
            endOfPassWriteIndex: 2 * (kind - 1) - 1,
          },
        });
      }
      pass ??= encoder.beginComputePass();
      const pipeline = (d.things[words[i + 1]!] as Compiling).pipeline!;
      if (pipeline !== set) pass.setPipeline(pipeline);
      set = pipeline;
      pass.setBindGroup(0, d.things[words[i + 2]!] as GPUBindGroup, words, i + 3, 1);
      pass.dispatchWorkgroups(words[i + 4]!, words[i + 5]!, words[i + 6]!);
      if (kind > 1) end();
    }
    end();
    this.#send(d, encoder);
  }

  #send(d: Device, encoder: GPUCommandEncoder): void {
    const queue = d.device!.queue;
    queue.submit([encoder.finish()]);
    const number = ++d.submitted;
    const arrived = () => {
      d.done = Math.max(d.done, number);
      this.stir();
    };
    queue.onSubmittedWorkDone().then(arrived, arrived);
  }

  #queries(d: Device): GPUQuerySet {
    d.queries ??= d.device!.createQuerySet({ type: "timestamp", count: MAX_TIMESTAMPS });
    d.resolved ??= d.device!.createBuffer({
      size: MAX_TIMESTAMPS * 8,
      usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC,
    });
    return d.queries;
  }

  /** The functions that the module imports as "gpu". */
  imports(): Record<string, (...given: number[]) => number | void> {
    const of = (gpu: number): Device => this.#devices[gpu]!;
    // GPUBufferUsage, by wk_gpu_usage.
    const usages = [0x80 | 0x04 | 0x08, 0x40 | 0x08, 0x01 | 0x08];
    return {
      found: () => (this.#found.reason ? 0 : this.#found.isSoftware ? 2 : 1),
      text: (gpu, which, out, capacity) => {
        const d = this.#devices[gpu!];
        const info = d?.adapter?.info;
        const texts = [
          info?.device || info?.description || info?.architecture || "a GPU of WebGPU",
          info?.vendor ?? "", info?.architecture ?? "", info?.description ?? "",
          d ? d.message : this.#found.reason,
        ];
        this.#memory().putText(out!, capacity!, texts[which!]!);
      },
      open: (flags, not) => {
        const d = new Device(not!);
        this.#open(d, flags!).then(
          () => (d.state = READY),
          (reason) => {
            d.state = FAILED;
            d.message = `the GPU cannot be opened: ${toText(reason)}`;
          },
        ).finally(() => this.stir());
        return this.#devices.push(d) - 1;
      },
      opened: (gpu, numbers) => {
        const d = of(gpu!);
        if (d.state === READY) {
          const values = this.#describe(d);
          this.#memory().doubles(numbers!, values.length).set(values);
        }
        return d.state;
      },
      close: (gpu) => {
        const d = of(gpu!);
        d.isClosed = true;
        d.device?.destroy();
        this.#devices[gpu!] = undefined;
      },
      lose: (gpu) => of(gpu!).device?.destroy(),
      poll: (gpu, done) => {
        const d = of(gpu!);
        this.#memory().doubles(done!, 1)[0] = d.done;
        const event = d.events.shift();
        d.message = event?.message ?? "";
        return event?.kind ?? NOTHING;
      },
      release: (gpu, id) => {
        const d = of(gpu!);
        const thing = d.things[id!];
        if (thing && "destroy" in thing) thing.destroy();
        d.things[id!] = undefined;
        d.freed.push(id!);
      },
      buffer: (gpu, usage, size) => {
        const d = of(gpu!);
        try {
          return d.add(d.device!.createBuffer({ size: size!, usage: usages[usage!]! }));
        } catch {
          return 0;
        }
      },
      write: (gpu, id, offset, at, size) => {
        const d = of(gpu!);
        d.device!.queue.writeBuffer(d.things[id!] as GPUBuffer, offset!,
                                    this.#memory().bytes(at!, size!) as Uint8Array<ArrayBuffer>);
      },
      map: (gpu, id, size) => {
        const d = of(gpu!);
        const buffer = d.things[id!] as GPUBuffer;
        const mapping: Mapping = { buffer, size: size!, isMapped: false };
        d.mappings.set(id!, mapping);
        mapping.buffer.mapAsync(GPUMapMode.READ, 0, size).then(
          () => (mapping.isMapped = true),
          (reason) => {
            if (d.mappings.get(id!) !== mapping || d.isLost) return;
            void this.#complain(d, WRONG, `a buffer could not be read: ${toText(reason)}`);
          },
        ).finally(() => this.stir());
      },
      mapped: (gpu, id, out) => {
        const mapping = of(gpu!).mappings.get(id!);
        if (!mapping?.isMapped || of(gpu!).nDoubts > 0) return 0;
        const range = mapping.buffer.getMappedRange(0, mapping.size);
        this.#memory().bytes(out!, mapping.size).set(new Uint8Array(range));
        return 1;
      },
      unmap: (gpu, id) => {
        const d = of(gpu!);
        d.mappings.get(id!)?.buffer.unmap();
        d.mappings.delete(id!);
      },
      layout: (gpu, n, writable, uniformBytes) => {
        const d = of(gpu!);
        const entries: GPUBindGroupLayoutEntry[] = [];
        for (let i = 0; i < n!; i++) {
          const type = (writable! >>> i) & 1 ? "storage" : "read-only-storage";
          entries.push({ binding: i, visibility: GPUShaderStage.COMPUTE, buffer: { type } });
        }
        entries.push({
          binding: n!,
          visibility: GPUShaderStage.COMPUTE,
          buffer: { type: "uniform", hasDynamicOffset: true, minBindingSize: uniformBytes },
        });
        return d.add(d.device!.createBindGroupLayout({ entries }));
      },
      group: (gpu, layout, bindings, n, params, paramBytes) => {
        const d = of(gpu!);
        const numbers = this.#memory().doubles(bindings!, 3 * n!);
        const entries: GPUBindGroupEntry[] = [];
        for (let i = 0; i < n!; i++) {
          const buffer = d.things[numbers[3 * i]!] as GPUBuffer;
          entries.push({
            binding: i,
            resource: { buffer, offset: numbers[3 * i + 1], size: numbers[3 * i + 2] },
          });
        }
        const buffer = d.things[params!] as GPUBuffer;
        entries.push({ binding: n!, resource: { buffer, size: paramBytes } });
        return d.add(d.device!.createBindGroup({
          layout: d.things[layout!] as GPUBindGroupLayout, entries,
        }));
      },
      pipeline: (gpu, layout, label, wgsl, entry) => {
        const d = of(gpu!);
        const memory = this.#memory();
        const thing: Compiling = { state: PENDING, message: "" };
        void this.#compile(d, thing, memory.text(label!), memory.text(wgsl!), memory.text(entry!),
                           d.things[layout!] as GPUBindGroupLayout);
        return d.add(thing);
      },
      compiled: (gpu, id, out, capacity) => {
        const thing = of(gpu!).things[id!] as Compiling;
        if (thing.state === FAILED) this.#memory().putText(out!, capacity!, thing.message);
        return thing.state;
      },
      submit: (gpu, commands, n) => this.#submit(of(gpu!), commands!, n!),
      timestamps: (gpu, n, id) => {
        const d = of(gpu!);
        const encoder = d.device!.createCommandEncoder();
        encoder.resolveQuerySet(this.#queries(d), 0, n!, d.resolved!, 0);
        encoder.copyBufferToBuffer(d.resolved!, 0, d.things[id!] as GPUBuffer, 0, n! * 8);
        this.#send(d, encoder);
      },
    };
  }
}
