/** The package for service workers and the backgrounds of extensions: nothing is imported later. */
import { Engine } from "./engine.js";
import { useEngine } from "./engine_here.js";

useEngine(Engine);

export * from "./wick.js";
