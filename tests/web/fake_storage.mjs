// What a browser has and Node lacks, as much of it as the cache uses: the origin's private file
// system, the Cache API, Web Locks; a fetch that hides headers from other origins. All of these may
// answer late.

const missing = () => new DOMException("not found", "NotFoundError");

/** The disk of an origin: `left` bytes may still be written. */
export class Disk {
  left = Infinity;

  take(before, after) {
    if (after - before > this.left) throw new DOMException("full", "QuotaExceededError");
    this.left -= after - before;
  }
}

class FakeFile {
  bytes = new Uint8Array();

  constructor(disk) {
    this.disk = disk;
  }

  put(bytes) {
    this.disk.take(this.bytes.length, bytes.length);
    this.bytes = bytes.slice();
  }
}

class FileHandle {
  constructor(file, isWorker) {
    this.file = file;
    if (isWorker) this.createSyncAccessHandle = () => this.#openSync();
    else this.createWritable = () => this.#openStream();
  }

  async getFile() {
    return new Blob([this.file.bytes]);
  }

  async #openSync() {
    const { file } = this;
    if (file.isOpen) throw new DOMException("in use", "NoModificationAllowedError");
    file.isOpen = true;
    return {
      truncate: (size) => file.put(file.bytes.slice(0, size)),
      write: (bytes, { at }) => {
        const all = new Uint8Array(Math.max(file.bytes.length, at + bytes.length));
        all.set(file.bytes);
        all.set(bytes, at);
        file.put(all);
        return bytes.length;
      },
      flush: () => undefined,
      close: () => {
        file.isOpen = false;
      },
    };
  }

  async #openStream() {
    const pieces = [];
    return {
      write: async (bytes) => void pieces.push(bytes.slice()),
      abort: async () => undefined,
      close: async () => this.file.put(new Uint8Array(await new Blob(pieces).arrayBuffer())),
    };
  }
}

/** isWorker: with synchronous handles, as workers have them; else with streams. */
export class FakeDirectory {
  #folders = new Map();
  #files = new Map();

  constructor(disk = new Disk(), isWorker = true) {
    this.disk = disk;
    this.isWorker = isWorker;
  }

  async getDirectoryHandle(name, { create = false } = {}) {
    if (!this.#folders.has(name)) {
      if (!create) throw missing();
      this.#folders.set(name, new FakeDirectory(this.disk, this.isWorker));
    }
    return this.#folders.get(name);
  }

  async getFileHandle(name, { create = false } = {}) {
    if (!this.#files.has(name)) {
      if (!create) throw missing();
      this.#files.set(name, new FakeFile(this.disk));
    }
    return new FileHandle(this.#files.get(name), this.isWorker);
  }

  async removeEntry(name) {
    if (!this.#files.has(name) && !this.#folders.has(name)) throw missing();
    this.#files.get(name)?.put(new Uint8Array());
    this.#folders.get(name)?.#empty();
    this.#files.delete(name);
    this.#folders.delete(name);
  }

  async *values() {
    for (const name of this.#folders.keys()) yield { name, kind: "directory" };
    for (const name of this.#files.keys()) yield { name, kind: "file" };
  }

  #empty() {
    for (const file of this.#files.values()) file.put(new Uint8Array());
  }
}

export class FakeCache {
  #answers = new Map();

  constructor(disk = new Disk()) {
    this.disk = disk;
  }

  async match(url) {
    const bytes = this.#answers.get(url);
    return bytes && new Response(bytes);
  }

  async put(url, response) {
    const bytes = new Uint8Array(await response.arrayBuffer());
    this.disk.take(this.#answers.get(url)?.length ?? 0, bytes.length);
    this.#answers.set(url, bytes);
  }

  async delete({ url }) {
    this.disk.take(this.#answers.get(url)?.length ?? 0, 0);
    return this.#answers.delete(url);
  }

  async keys() {
    return [...this.#answers.keys()].map((url) => ({ url }));
  }
}

export class FakeLockManager {
  #held = new Set();

  async request(name, { ifAvailable }, callback) {
    if (this.#held.has(name) && ifAvailable) return callback(null);
    this.#held.add(name);
    try {
      return await callback({ name });
    } finally {
      this.#held.delete(name);
    }
  }
}

/** Waits of random lengths, milliseconds: another kind of length for each operation. */
function randomWaits() {
  const { random } = Math;
  const kinds = [() => 0, () => 3 * random(), () => (random() < 0.1 ? 40 * random() : 0)];
  const kindOf = new Map();
  return async (operation) => {
    if (!kindOf.has(operation))
      kindOf.set(operation, kinds[Math.floor(kinds.length * random())]);
    const length = kindOf.get(operation)();
    if (length > 0) await new Promise((resolve) => setTimeout(resolve, length));
  };
}

/** Functions of an object that begin and answer late. */
export function makeLate(object, names) {
  const wait = randomWaits();
  const late = (name) => async (...given) => {
    await wait(`${name} begins`);
    const result = await object[name](...given);
    await wait(`${name} ends`);
    return result;
  };
  return Object.fromEntries(names.map((name) => [name, late(name)]));
}

const SAFE = ["cache-control", "content-language", "content-length", "content-type", "expires",
  "last-modified", "pragma"];

/** fetch as a page of another origin has it (CORS). */
export async function crossOriginFetch(url, options) {
  const response = await fetch(url, options);
  const exposed = (response.headers.get("Access-Control-Expose-Headers") ?? "").toLowerCase()
    .split(/,\s*/);
  const seen = [...response.headers]
    .filter(([name]) => SAFE.includes(name) || exposed.includes(name));
  const answer = new Response(response.body, { status: response.status, headers: seen });
  return Object.assign(answer, { response }); // Node ends the body of one that nothing holds
}
