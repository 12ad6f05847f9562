/** The numbers that operations on tensors are given, in the order of web/glue/tensors/ops.def. */
import { WickError } from "./errors.js";
import type { Tensor } from "./tensor.js";
import type {
  ConvOptions, PadMode, PoolOptions, Reduction, ResizeMode, RopeLayout, ScatterMode, WindowOptions,
} from "./tensor_types.js";
import { whole, wholes } from "./values.js";

/** Over which dims: one, several, or all (the default). */
export type Dims = number | number[] | undefined;

/** A scale that weighs all keys alike, where 0 is the default. */
export const FLT_MIN = 2 ** -126;

/** In the order of wick_scatter_fn. */
export const SCATTER_MODES: ScatterMode[] = ["set", "add", "mul", "max", "min"];

/** In the order of wick_pad_mode. */
export const PAD_MODES: PadMode[] = ["constant", "reflect", "replicate", "circular"];

/** In the order of wick_resize_mode. */
export const RESIZE_MODES: ResizeMode[] = ["nearest", "linear", "cubic"];

/** In the order of wick_reduction. */
export const REDUCTIONS: Reduction[] = ["mean", "sum", "none"];

/** The place of a word in its list. */
export function modeNumber<T extends string>(modes: T[], mode: T): number {
  if (modes.includes(mode)) return modes.indexOf(mode);
  throw new WickError("VALUE", `one of ${modes.join(", ")} is wanted, not ${String(mode)}`);
}

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

/**
 * Three numbers, of n spatial dims and zeros; one number is meant for all of them. least: what they
 * are at least; undefined: they have their default, which is 0.
 */
function spatial(what: string, n: number, given: number | number[] | undefined,
                 least: number): number[] {
  const list = given === undefined ? [] : wholes([given].flat());
  if (list.length > 1 && list.length !== n)
    throw new WickError("ARGUMENT", `${what}: ${n} numbers are wanted, not ${list.length}`);
  if (list.some((value) => value < least))
    throw new WickError("VALUE", `${what} must be at least ${least}, not ${list.join(", ")}`);
  return [0, 1, 2].map((i) => (i < n ? list[i] ?? list[0] ?? 0 : 0));
}

/** As conv_desc of operands.h takes them. */
export function convNumbers(name: string, n: number, options: ConvOptions): number[] {
  const { stride, padding, dilation, outputPadding, groups } = options;
  return [
    ...spatial(`${name}: stride`, n, stride, 1), ...spatial(`${name}: padding`, n, padding, 0),
    ...spatial(`${name}: dilation`, n, dilation, 1),
    ...spatial(`${name}: outputPadding`, n, outputPadding, 0),
    spatial(`${name}: groups`, 1, groups, 1)[0]!,
  ];
}

/** As pooling_desc takes them. */
export function poolNumbers(name: string, n: number, kernel: number | number[],
                            options: PoolOptions): number[] {
  const { stride, padding, dilation, ceilMode = false, excludesPadding = false } = options;
  return [
    ...spatial(`${name}: kernel`, n, kernel, 1), ...spatial(`${name}: stride`, n, stride, 1),
    ...spatial(`${name}: padding`, n, padding, 0), ...spatial(`${name}: dilation`, n, dilation, 1),
    Number(ceilMode), Number(excludesPadding),
  ];
}

/** The number that a tensor holds, which is released. */
export async function takeItem(tensor: Tensor): Promise<number> {
  try {
    return await tensor.item();
  } finally {
    tensor.dispose();
  }
}
