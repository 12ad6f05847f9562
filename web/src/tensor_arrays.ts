/** Operations that arrange, copy, choose and find elements. */
import type { Tensor } from "./tensor.js";
import {
  type Dims, overDims, PAD_MODES, pair, pairs, SCATTER_MODES, takeItem, windowNumbers,
} from "./tensor_numbers.js";
import { ProductTensor } from "./tensor_products.js";
import type { PadMode, ScalarDtype, ScatterMode, WindowOptions } from "./tensor_types.js";
import { whole, wholes } from "./values.js";

export class ArrayTensor extends ProductTensor {
  // --- Views: no data moves (reshape and flatten copy where strides force it) ---

  transpose(dim0 = -2, dim1 = -1): Tensor {
    return this.op("transpose", [], [dim0, dim1].map(whole));
  }
  permute(dims: number[]): Tensor { return this.op("permute", [], wholes(dims)); }
  /** One extent may be -1: what is left. */
  reshape(shape: number[]): Tensor { return this.op("reshape", [], wholes(shape)); }
  /** Dims start to end (inclusive) become one. */
  flatten(start = 0, end = -1): Tensor { return this.op("flatten", [], [start, end].map(whole)); }
  /** Removes those of dims, or of all, whose extent is 1. */
  squeeze(dims?: Dims): Tensor { return this.op("squeeze_dims", [], overDims(dims)); }
  unsqueeze(dim: number): Tensor { return this.op("unsqueeze", [], [whole(dim)]); }
  narrow(dim: number, start: number, length: number): Tensor {
    return this.op("narrow", [], [dim, start, length].map(whole));
  }
  /** Elements start, start + step, ... below stop; step > 0. */
  slice(dim: number, start: number, stop: number, step = 1): Tensor {
    return this.op("slice", [], [dim, start, stop, step].map(whole));
  }
  /** Parts of dim of ceil(extent / count) elements, the last one perhaps smaller; of an empty dim
   * `count`. */
  async chunk(count: number, dim = 0): Promise<Tensor[]> {
    const extent = (await this.describe()).shape.at(dim) ?? 0;
    const n = (extent > 0 ? Math.ceil(extent / Math.ceil(extent / count)) : count) || 1;
    return this.ops("chunk", [], [count, dim].map(whole), n);
  }
  /** Dims of extent 1, and new leading ones, are repeated without a copy. */
  expand(shape: number[]): Tensor { return this.op("expand", [], wholes(shape)); }
  /** Parts of dim of these sizes. */
  split(sizes: number[], dim = 0): Tensor[] {
    const numbers = [sizes.length, dim, ...sizes].map(whole);
    return this.ops("split", [], numbers, sizes.length);
  }
  /** Each element of dim, without dim. */
  async unstack(dim = 0): Promise<Tensor[]> {
    const n = (await this.describe()).shape.at(dim) ?? 1; // a dim that is not there is refused
    return n === 0 ? [] : this.ops("unstack", [], [whole(dim)], n);
  }
  /** The last two dims change places. */
  matrixTranspose(): Tensor { return this.op("matrix_transpose"); }
  /** Dims `from` go to the places `to`, the others keep their order. */
  movedim(from: number | number[], to: number | number[]): Tensor {
    return this.op("movedim", [], pairs(from, to));
  }
  /** Windows of size elements along dim, step apart, in a new last dim. */
  unfold(dim: number, size: number, step: number): Tensor {
    return this.op("unfold", [], [dim, size, step].map(whole));
  }
  /** Elements (i, i + offset) of two dims, in a new last dim. */
  diagonal(offset = 0, dim0 = 0, dim1 = 1): Tensor {
    return this.op("diagonal", [], [offset, dim0, dim1].map(whole));
  }
  /** A view where it is dense, else a dense copy. */
  contiguous(): Tensor { return this.op("contiguous"); }

  // --- Copies ---

  /** Of this shape and dtype. */
  fullLike(value: number): Tensor { return this.op("full_like", [], [value]); }
  zerosLike(): Tensor { return this.op("zeros_like"); }
  onesLike(): Tensor { return this.op("ones_like"); }
  emptyLike(): Tensor { return this.op("empty_like"); }
  /** 1 at these indices in a new last dim, else 0. */
  oneHot(classes: number, dtype: ScalarDtype = "f32"): Tensor {
    return this.commands.op("one_hot", [this], [whole(classes)], dtype);
  }
  /** Beside itself: for each of the last dims how often; at least as many as there are dims. */
  repeat(repeats: number[]): Tensor { return this.op("repeat", [], wholes(repeats)); }
  /** The same of any number of dims. */
  tile(repeats: number[]): Tensor { return this.op("tile", [], wholes(repeats)); }
  /** Each element of dim count times, one after another. */
  repeatInterleave(count: number, dim: number): Tensor {
    return this.op("repeat_interleave", [], [count, dim].map(whole));
  }
  /** Elements move up, those at the end come first; without dims, in row-major order. */
  roll(shifts: number | number[], dims?: number | number[]): Tensor {
    const list = [shifts].flat(), along = dims === undefined ? [] : pairs(shifts, dims);
    return this.op("roll", [], [list.length, Number(dims !== undefined), ...wholes(list),
                                 ...along.slice(list.length + 1)]);
  }
  /** In reverse, over all dims where none are given. */
  flip(dims?: Dims): Tensor { return this.op("flip", [], overDims(dims)); }
  /** before and after: of each dim; negative ones cut off. */
  pad(before: number[], after: number[], mode: PadMode = "constant", value = 0): Tensor {
    return this.op("pad", [], [PAD_MODES.indexOf(mode), value, ...pairs(before, after).slice(1)]);
  }
  /** A copy with src at elements start to stop - 1 of each dim. */
  sliceAssign(start: number[], stop: number[], src: Tensor): Tensor {
    return this.op("slice_assign", [src], pairs(start, stop).slice(1));
  }
  /** A copy with src at elements start, start + 1, ... of dim. */
  sliceScatter(src: Tensor, dim: number, start = 0): Tensor {
    return this.op("slice_scatter", [src], [dim, start].map(whole));
  }
  /** A square matrix of zeros with this on a diagonal; of a matrix, that diagonal. */
  diag(offset = 0): Tensor { return this.op("diag", [], [whole(offset)]); }
  /** x[i + 1] - x[i] along dim, n times over. */
  diff(n = 1, dim = -1): Tensor { return this.op("diff", [], [n, dim].map(whole)); }
  /** value where mask is not zero. */
  maskedFill(mask: Tensor, value: number): Tensor {
    return this.op("masked_fill", [mask], [value]);
  }

  // --- Images and windows ---

  /** Windows of [n, c, h, w] as columns: [n, c kh kw, positions]. */
  im2col(kernel: number | number[], options: WindowOptions = {}): Tensor {
    return this.op("im2col", [], [...pair(kernel, 1), ...windowNumbers(options)]);
  }
  /** The adjoint: columns added up to images of size [h, w]. */
  col2im(size: number | number[], kernel: number | number[], options: WindowOptions = {}): Tensor {
    return this.op("col2im", [], [size, kernel].flatMap((given) => pair(given, 1))
      .concat(windowNumbers(options)));
  }
  /** The adjoint of `unfold`: windows added up to a dim of that extent. */
  fold(dim: number, extent: number, step: number): Tensor {
    return this.op("fold", [], [dim, extent, step].map(whole));
  }
  /** [.., c r r, h, w] to [.., c, h r, w r], r being the factor, and back. */
  pixelShuffle(factor: number): Tensor { return this.op("pixel_shuffle", [], [whole(factor)]); }
  pixelUnshuffle(factor: number): Tensor {
    return this.op("pixel_unshuffle", [], [whole(factor)]);
  }
  /** Channel i of group g becomes channel i groups + g. */
  channelShuffle(groups: number): Tensor {
    return this.op("channel_shuffle", [], [whole(groups)]);
  }

  // --- By index: integers; one out of range fails (INDEX) with the next answer ---

  /** Of the shape of index: along dim element i is element index[i], elsewhere the same one. */
  gather(dim: number, index: Tensor): Tensor { return this.op("gather", [index], [whole(dim)]); }
  /** The same where the other dims broadcast. */
  takeAlongDim(dim: number, index: Tensor): Tensor {
    return this.op("take_along_dim", [index], [whole(dim)]);
  }
  /** Slices along dim: index [m]. */
  indexSelect(dim: number, index: Tensor): Tensor {
    return this.op("index_select", [index], [whole(dim)]);
  }
  /** A copy in which, along dim, source i meets element index[i], as mode says; of several `set`
   * ones the last one stays. */
  scatter(dim: number, index: Tensor, src: Tensor, mode: ScatterMode = "set"): Tensor {
    return this.op("scatter", [index, src], [whole(dim), SCATTER_MODES.indexOf(mode)]);
  }
  scatterAdd(dim: number, index: Tensor, src: Tensor): Tensor {
    return this.op("scatter_add", [index, src], [whole(dim)]);
  }
  /** A copy to whose slices index [m] along dim the slices of src are added. */
  indexAdd(dim: number, index: Tensor, src: Tensor): Tensor {
    return this.op("index_add", [index, src], [whole(dim)]);
  }
  /** The same in this tensor itself; `indexCopyInPlace` sets slices. */
  scatterInPlace(dim: number, index: Tensor, src: Tensor, mode: ScatterMode = "set"): this {
    return this.inPlace("scatter_in_place", [index, src],
                        [whole(dim), SCATTER_MODES.indexOf(mode)]);
  }
  indexAddInPlace(dim: number, index: Tensor, src: Tensor): this {
    return this.inPlace("index_add_in_place", [index, src], [whole(dim)]);
  }
  indexCopyInPlace(dim: number, index: Tensor, src: Tensor): this {
    return this.inPlace("index_copy_in_place", [index, src], [whole(dim)]);
  }
  /** Slices at index [.., k], places in the first k dims: [.., the other dims]. */
  gatherNd(index: Tensor): Tensor { return this.op("gather_nd", [index]); }
  /** A copy that meets src, of that shape, there, as mode says. */
  scatterNd(index: Tensor, src: Tensor, mode: ScatterMode = "set"): Tensor {
    return this.op("scatter_nd", [index, src], [SCATTER_MODES.indexOf(mode)]);
  }

  // --- Order and running sums ---

  /** Element i is the sum of elements 0 to i along dim. */
  cumsum(dim: number): Tensor { return this.op("cumsum", [], [whole(dim)]); }
  /** Their product. */
  cumprod(dim: number): Tensor { return this.op("cumprod", [], [whole(dim)]); }
  /** u32 indices that sort along dim; of equal elements the first comes first, NaN is largest. */
  argsort(dim = -1, descending = false): Tensor {
    return this.op("argsort", [], [whole(dim), Number(descending)]);
  }
  /** The elements in that order, and the indices. */
  sort(dim = -1, descending = false): { values: Tensor; indices: Tensor } {
    return this.pairOf("sort", [whole(dim), Number(descending)]);
  }

  // --- Searching ---

  /** Elements in row-major order, in the shape of index. */
  take(index: Tensor): Tensor { return this.op("take", [index]); }
  /** u8: which elements are among those of set. */
  isin(set: Tensor): Tensor { return this.op("isin", [set]); }
  /** u32: how many elements of this [.., n], ascending, are less than values; right: or equal. */
  searchsorted(values: Tensor, right = false): Tensor {
    return this.op("searchsorted", [values], [Number(right)]);
  }
  /** u32 [count, rank]: where elements are not zero. */
  async nonzero(): Promise<Tensor> {
    return this.op("nonzero", [], [await takeItem(this.countNonzero())]);
  }
  /** Elements where mask is not zero, in row-major order; they broadcast. */
  async maskedSelect(mask: Tensor): Promise<Tensor> {
    const ones = this.onesLike(), all = mask.logicalAnd(ones), count = all.countNonzero();
    for (const tensor of [ones, all]) tensor.dispose();
    return this.op("masked_select", [mask], [await takeItem(count)]);
  }
  /** The different values, ascending; the first element with each, for each element which value it
   * has, and how many have each. */
  async unique(): Promise<Record<"values" | "indices" | "inverse" | "counts", Tensor>> {
    const { shape } = await this.describe(), which = this.uniqueInverse();
    const count = shape.includes(0) ? 0 : await takeItem(which.max()) + 1;
    which.dispose();
    const [values, indices, inverse, counts] = this.ops("unique", [], [count], 4);
    return { values: values!, indices: indices!, inverse: inverse!, counts: counts! };
  }
  /** For each element which of the different values it has. */
  uniqueInverse(): Tensor { return this.op("unique_inverse"); }
}
