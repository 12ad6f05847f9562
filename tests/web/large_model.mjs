// A model of any size that takes no room on the disk: stories260K with larger matrices of zeros
// between its layers, as a sparse file.
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from "node:fs";

/** Bytes of GGUF's value types that have one size. */
const SIZES = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8];
const STRING = 8, ARRAY = 9, ALIGNMENT = 32;

/** Reads a GGUF file's header from the front. */
class Reader {
  at = 0;

  constructor(bytes) {
    this.bytes = bytes;
  }

  u32() {
    return this.bytes.readUInt32LE((this.at += 4) - 4);
  }

  u64() {
    return Number(this.bytes.readBigUInt64LE((this.at += 8) - 8));
  }

  string() {
    const size = this.u64();
    return this.bytes.toString("utf8", this.at, this.at += size);
  }

  skip(type) {
    if (type === STRING) this.string();
    else if (type !== ARRAY) this.at += SIZES[type];
    else for (let element = this.u32(), n = this.u64(); n > 0; n--) this.skip(element);
  }
}

/** Walks over the header: visitors get the place of each value, and of each tensor's first dim. */
function walk(bytes, { onValue, onTensor }) {
  const reader = new Reader(bytes);
  reader.at = 8;
  const nTensors = reader.u64(), nValues = reader.u64();
  for (let i = 0; i < nValues; i++) {
    const key = reader.string(), type = reader.u32();
    onValue(key, reader.at);
    reader.skip(type);
  }
  for (let i = 0; i < nTensors; i++) {
    const name = reader.string(), nDims = reader.u32(), at = reader.at;
    reader.at += 8 * nDims + 4 + 8; // type and offset follow
    onTensor(name, nDims, at);
  }
  return reader.at;
}

/** Writes a model of about so many bytes, and returns how many exactly. All tensors are float32. */
export function writeLargeModel(path, nBytes) {
  const bytes = readFileSync(new URL("../data/stories260K.gguf", import.meta.url));
  let nHidden, nWide = 0, end = 0;
  walk(bytes, {
    onValue: (key, at) => {
      if (key === "llama.feed_forward_length") nHidden = bytes.readUInt32LE(at);
    },
    onTensor: (name) => void (nWide += /ffn_(up|gate|down)/.test(name)),
  });
  const nRow = 4 * 64; // bytes of stories260K's 64 values
  const nWider = Math.floor(nBytes / nWide / nRow);
  const headerEnd = walk(bytes, {
    onValue: (key, at) => {
      if (key === "llama.feed_forward_length") bytes.writeUInt32LE(nWider, at);
    },
    onTensor: (name, nDims, at) => {
      let size = 4;
      for (let i = 0; i < nDims; i++) {
        const dim = Number(bytes.readBigUInt64LE(at + 8 * i));
        const wider = dim === nHidden ? nWider : dim;
        bytes.writeBigUInt64LE(BigInt(wider), at + 8 * i);
        size *= wider;
      }
      bytes.writeBigUInt64LE(BigInt(end), at + 8 * nDims + 4);
      end += Math.ceil(size / ALIGNMENT) * ALIGNMENT;
    },
  });
  const total = Math.ceil(headerEnd / ALIGNMENT) * ALIGNMENT + end;
  const file = openSync(path, "w");
  writeSync(file, bytes, 0, headerEnd);
  ftruncateSync(file, total);
  closeSync(file);
  return total;
}
