/**
 * The engine's code, for an engine in the caller's own thread: fetched when the first one is
 * opened, unless it is there already, as in service workers, which may not import later.
 */
import type { Engine } from "./engine.js";

let load: () => Promise<typeof Engine> = async () => (await import("./engine.js")).Engine;

export const loadEngine = (): Promise<typeof Engine> => load();

export function useEngine(engine: typeof Engine): void {
  load = () => Promise.resolve(engine);
}
