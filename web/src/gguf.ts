/** Adapters as GGUF files (version 3), in the form that llama.cpp has for them. */

/** f32, row-major. */
export interface AdapterTensor {
  name: string;
  shape: number[];
  bytes: Uint8Array;
}

const MAGIC = 0x46554747, VERSION = 3, ALIGNMENT = 32;
/** Types of values, and of tensors. */
const FLOAT32 = 6, STRING = 8, F32 = 0;

const padded = (size: number): number => Math.ceil(size / ALIGNMENT) * ALIGNMENT;

/** The bytes of a header, little-endian. */
class Header {
  readonly #parts: Uint8Array[] = [];

  #put(size: number, write: (view: DataView) => void): this {
    const view = new DataView(new ArrayBuffer(size));
    write(view);
    this.#parts.push(new Uint8Array(view.buffer));
    return this;
  }

  u32 = (value: number): this => this.#put(4, (view) => view.setUint32(0, value, true));
  u64 = (value: number): this => this.#put(8, (view) => view.setBigUint64(0, BigInt(value), true));
  f32 = (value: number): this => this.#put(4, (view) => view.setFloat32(0, value, true));

  text(value: string): this {
    const bytes = new TextEncoder().encode(value);
    this.u64(bytes.length);
    this.#parts.push(bytes);
    return this;
  }

  /** Followed by the tensors, each at its place. */
  with(tensors: AdapterTensor[]): Uint8Array<ArrayBuffer> {
    const size = padded(this.#parts.reduce((sum, { length }) => sum + length, 0));
    const total = tensors.reduce((sum, { bytes }) => sum + padded(bytes.length), size);
    const file = new Uint8Array(total);
    let at = 0;
    for (const part of this.#parts) {
      file.set(part, at);
      at += part.length;
    }
    at = size;
    for (const { bytes } of tensors) {
      file.set(bytes, at);
      at += padded(bytes.length);
    }
    return file;
  }
}

export function writeAdapter(architecture: string, alpha: number,
                             tensors: AdapterTensor[]): Uint8Array<ArrayBuffer> {
  const texts = { "general.type": "adapter", "general.architecture": architecture,
                  "adapter.type": "lora" };
  const header = new Header().u32(MAGIC).u32(VERSION).u64(tensors.length)
    .u64(Object.keys(texts).length + 1);
  for (const [key, value] of Object.entries(texts)) header.text(key).u32(STRING).text(value);
  header.text("adapter.lora.alpha").u32(FLOAT32).f32(alpha);
  let offset = 0;
  for (const { name, shape, bytes } of tensors) {
    header.text(name).u32(shape.length);
    for (const extent of [...shape].reverse()) header.u64(extent);
    header.u32(F32).u64(offset);
    offset += padded(bytes.length);
  }
  return header.with(tensors);
}
