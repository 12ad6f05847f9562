/** The numbers that operations on tensors are given, in the order of web/glue/tensors/ops.def. */
import { WickError } from "./errors.js";
import type { Tensor } from "./tensor.js";
import type { PadMode, RopeLayout, ScatterMode, WindowOptions } from "./types.js";
import { whole, wholes } from "./values.js";

/** Over which dims: one, several, or all (the default). */
export type Dims = number | number[] | undefined;

/** A scale that weighs all keys alike, where 0 is the default. */
export const FLT_MIN = 2 ** -126;

/** In the order of wick_scatter_fn. */
export const SCATTER_MODES: ScatterMode[] = ["set", "add", "mul", "max", "min"];

/** In the order of wick_pad_mode. */
export const PAD_MODES: PadMode[] = ["constant", "reflect", "replicate", "circular"];

export const layoutNumber = (layout: RopeLayout = "bhtd"): number => (layout === "bthd" ? 1 : 0);

/** keepdim and what else, then whether there are dims, and these. */
export function overDims(dims: Dims, ...numbers: number[]): number[] {
  if (dims === undefined) return [...numbers, 0];
  return [...numbers, 1, ...wholes(typeof dims === "number" ? [dims] : dims)];
}

/** The number of entries of both, then these. */
export function pairs(a: number | number[], b: number | number[]): number[] {
  const first = wholes([a].flat()), second = wholes([b].flat());
  if (first.length === second.length) return [first.length, ...first, ...second];
  throw new WickError("ARGUMENT", `lists of ${first.length} and ${second.length} numbers are given `
    + "where they belong together");
}

/** Of two dims; one number is meant for both. */
export function pair(given: number | number[] | undefined, fallback: number): number[] {
  const [a = fallback, b = a] = [given ?? fallback].flat();
  return [a, b].map(whole);
}

export const windowNumbers = ({ padding, stride, dilation }: WindowOptions): number[] =>
  [pair(padding, 0), pair(stride, 1), pair(dilation, 1)].flat();

/** The number that a tensor holds, which is released. */
export async function takeItem(tensor: Tensor): Promise<number> {
  try {
    return await tensor.item();
  } finally {
    tensor.dispose();
  }
}
