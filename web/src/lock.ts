/**
 * One writer at a time for each entry of the cache, among all tabs and workers of the origin: by
 * Web Locks, else by a file that says who writes and until when.
 */
import type { Storage } from "./storage.js";

/** Gives the lock back. */
export type Release = () => Promise<void>;

export interface Locks {
  /** undefined: somebody else has it. */
  tryLock(name: string): Promise<Release | undefined>;
}

export function openLocks(storage: Storage): Locks {
  if (storage.kind === "memory") return new LocalLocks();
  const locks = globalThis.navigator?.locks;
  return locks !== undefined ? new WebLocks(locks) : new LeaseLocks(storage);
}

/** Of this page or worker. */
const heldHere = new Set<string>();

/** For what no other page or worker can see. */
export class LocalLocks implements Locks {
  tryLock(name: string): Promise<Release | undefined> {
    if (heldHere.has(name)) return Promise.resolve(undefined);
    heldHere.add(name);
    return Promise.resolve(() => Promise.resolve(void heldHere.delete(name)));
  }
}

/** They end with the tab that holds them. */
export class WebLocks implements Locks {
  readonly #locks: LockManager;

  constructor(locks: LockManager) {
    this.#locks = locks;
  }

  tryLock(name: string): Promise<Release | undefined> {
    return new Promise((resolve, reject) => {
      const held = this.#locks.request(`wick:${name}`, { ifAvailable: true }, (lock) => {
        if (lock === null) return resolve(undefined);
        return new Promise<void>((release) => {
          resolve(async () => {
            release();
            await held;
          });
        });
      });
      // An opaque origin, as a sandboxed frame has, gets no lock and shares nothing.
      held.catch((error: unknown) => error instanceof DOMException
        && ["SecurityError", "InvalidStateError"].includes(error.name)
        ? resolve(new LocalLocks().tryLock(name)) : reject(error));
    });
  }
}

interface Lease {
  owner: string;
  /** Milliseconds since 1970. */
  until: number;
}

export const LEASE_FOLDER = "locks";

/**
 * A lease is renewed while it is held, and runs out when its tab is gone. Whoever wrote last has
 * it: two that write at once look again after a while that is longer than a write takes. That is
 * not as certain as Web Locks; if both go on, the hash of each part shows it.
 */
export class LeaseLocks implements Locks {
  readonly #storage: Storage;
  readonly #duration: number;

  /** duration: milliseconds. */
  constructor(storage: Storage, duration = 15000) {
    this.#storage = storage;
    this.#duration = duration;
  }

  async tryLock(name: string): Promise<Release | undefined> {
    if ((await this.#read(name)).until > Date.now()) return undefined;
    const owner = Math.random().toString(36).slice(2);
    try {
      await this.#write(name, { owner, until: Date.now() + this.#duration });
    } catch (error) {
      if (error instanceof DOMException) return undefined; // another is writing it just now
      throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, this.#duration / 100));
    if ((await this.#read(name)).owner !== owner) return undefined;
    let last = Promise.resolve();
    const timer = setInterval(() => {
      last = this.#write(name, { owner, until: Date.now() + this.#duration });
      last.catch(() => undefined); // it runs out early then
    }, this.#duration / 3);
    return async () => {
      clearInterval(timer);
      await last.catch(() => undefined);
      // Where that fails, it runs out.
      await this.#write(name, { owner, until: 0 }).catch(() => undefined);
    };
  }

  async #read(name: string): Promise<Lease> {
    const none = { owner: "", until: 0 };
    const bytes = await this.#storage.read(LEASE_FOLDER, name);
    if (bytes === undefined) return none;
    try {
      return JSON.parse(new TextDecoder().decode(bytes)) as Lease;
    } catch {
      return none; // half written
    }
  }

  async #write(name: string, lease: Lease): Promise<void> {
    const text = JSON.stringify(lease);
    await this.#storage.write(LEASE_FOLDER, name, new TextEncoder().encode(text));
  }
}
