/** Files of tensors by name (safetensors): 8 bytes with the size of a JSON header, it, the data. */
import { WickError } from "libwick";
import type { TensorValues } from "libwick";

interface Entry {
  dtype: string;
  shape: number[];
  data_offsets: [number, number];
}

export interface StoredTensor {
  values: TensorValues;
  shape: number[];
}

const CLASSES: Record<string, new (buffer: ArrayBuffer) => TensorValues> = {
  F32: Float32Array, I32: Int32Array, U8: Uint8Array,
};

export function readSafetensors(bytes: ArrayBuffer): Map<string, StoredTensor> {
  const size = bytes.byteLength < 8 ? 0 : Number(new DataView(bytes).getBigUint64(0, true));
  if (size < 2 || size > bytes.byteLength - 8)
    throw new WickError("FORMAT", "the file is not in the format safetensors");
  const header = JSON.parse(new TextDecoder().decode(bytes.slice(8, 8 + size))) as
    Record<string, Entry>;
  const tensors = Object.entries(header).filter(([name]) => name !== "__metadata__");
  return new Map(tensors.map(([name, { dtype, shape, data_offsets: [from, to] }]) => {
    const Values = CLASSES[dtype];
    if (!Values) throw new WickError("UNSUPPORTED", `the tensor ${name} is ${dtype}`);
    return [name, { values: new Values(bytes.slice(8 + size + from, 8 + size + to)), shape }];
  }));
}

/** A file beside the page. */
export async function fetchSafetensors(name: string, signal: AbortSignal) {
  const response = await fetch(name, { signal });
  if (!response.ok) throw new WickError("NOT_FOUND", `${name} is not beside this page`);
  return readSafetensors(await response.arrayBuffer());
}
