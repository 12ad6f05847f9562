// The recorded cases of shared/data/ops, read from their files, or those of another folder.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { readArrays } from "./op_calls.mjs";

const shared = process.env.WICK_SHARED_DATA
  ?? fileURLToPath(new URL("../../../shared/data", import.meta.url));

/** The folder, for a server. */
export const opsFolder = `${shared}/ops`;

/** undefined: the fixtures are not here. */
export function readFixtures(folder = opsFolder) {
  try {
    const lines = readFileSync(`${folder}/cases.jsonl`).toString().trim().split("\n");
    const arrays = readArrays(readFileSync(`${folder}/data.safetensors`));
    return { cases: lines.map((line) => JSON.parse(line)), arrays };
  } catch {
    return undefined;
  }
}
