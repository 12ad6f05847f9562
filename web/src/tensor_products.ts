/** Reductions, products and transformers. */
import { NONE } from "./commands.js";
import type { Tensor } from "./tensor.js";
import { ElementTensor } from "./tensor_elements.js";
import { type Dims, FLT_MIN, layoutNumber, overDims, pairs } from "./tensor_numbers.js";
import type { AttentionOptions, RopeLayout, RopeOptions } from "./tensor_types.js";
import { whole } from "./values.js";

export class ProductTensor extends ElementTensor {
  // --- Reductions and normalisation ---

  sum(dims?: Dims, keepdim = false): Tensor {
    return this.op("sum", [], overDims(dims, Number(keepdim)));
  }
  prod(dims?: Dims, keepdim = false): Tensor {
    return this.op("prod", [], overDims(dims, Number(keepdim)));
  }
  mean(dims?: Dims, keepdim = false): Tensor {
    return this.op("mean", [], overDims(dims, Number(keepdim)));
  }
  /** Divided by the number of elements less correction. */
  var(dims?: Dims, keepdim = false, correction = 1): Tensor {
    return this.op("var", [], overDims(dims, Number(keepdim), correction));
  }
  /** The square root of `var`. */
  std(dims?: Dims, keepdim = false, correction = 1): Tensor {
    return this.op("std", [], overDims(dims, Number(keepdim), correction));
  }
  /** log(sum(e^x)), without its overflow. */
  logSumExp(dims?: Dims, keepdim = false): Tensor {
    return this.op("log_sum_exp", [], overDims(dims, Number(keepdim)));
  }
  /** sum(|x|^p)^(1 / p); p 0: how many are not zero; p infinite: the largest or least |x|. */
  norm(p = 2, dims?: Dims, keepdim = false): Tensor {
    return this.op("norm", [], overDims(dims, p, Number(keepdim)));
  }
  /** Whether all or any elements are not zero, u8, and how many, u32. */
  all(dims?: Dims, keepdim = false): Tensor {
    return this.op("all", [], overDims(dims, Number(keepdim)));
  }
  any(dims?: Dims, keepdim = false): Tensor {
    return this.op("any", [], overDims(dims, Number(keepdim)));
  }
  countNonzero(dims?: Dims, keepdim = false): Tensor {
    return this.op("count_nonzero", [], overDims(dims, Number(keepdim)));
  }
  max(dims?: Dims, keepdim = false): Tensor {
    return this.op("max", [], overDims(dims, Number(keepdim)));
  }
  min(dims?: Dims, keepdim = false): Tensor {
    return this.op("min", [], overDims(dims, Number(keepdim)));
  }
  /** u32 index of the first largest element along dim. */
  argmax(dim = -1, keepdim = false): Tensor {
    return this.op("argmax", [], [whole(dim), Number(keepdim)]);
  }
  argmin(dim = -1, keepdim = false): Tensor {
    return this.op("argmin", [], [whole(dim), Number(keepdim)]);
  }
  /** The k largest along dim, the largest first, and their u32 indices. */
  topK(k: number, dim = -1): { values: Tensor; indices: Tensor } {
    return this.pairOf("top_k", [k, dim].map(whole));
  }
  softmax(dim = -1): Tensor { return this.op("softmax", [], [whole(dim)]); }
  logSoftmax(dim = -1): Tensor { return this.op("log_softmax", [], [whole(dim)]); }
  /** x / sqrt(mean(x^2) + eps) * weight over the last dim. */
  rmsNorm(weight?: Tensor, eps = 1e-5): Tensor { return this.op("rms_norm", [weight ?? NONE], [eps]); }
  layerNorm(weight?: Tensor, bias?: Tensor, eps = 1e-5): Tensor {
    return this.op("layer_norm", [weight ?? NONE, bias ?? NONE], [eps]);
  }
  /** The same over the last n dims together, of whose shape weight and bias are. */
  rmsNormOver(n: number, weight?: Tensor, eps = 1e-5): Tensor {
    return this.op("rms_norm_over", [weight ?? NONE], [whole(n), eps]);
  }
  layerNormOver(n: number, weight?: Tensor, bias?: Tensor, eps = 1e-5): Tensor {
    return this.op("layer_norm_over", [weight ?? NONE, bias ?? NONE], [whole(n), eps]);
  }

  // --- Products ---

  /** [.., m, k] x [.., k, n]. */
  matmul(b: Tensor): Tensor { return this.op("matmul", [b]); }
  /** Of two vectors; along dim; of a matrix and a vector. */
  dot(b: Tensor): Tensor { return this.op("dot", [b]); }
  vecdot(b: Tensor, dim = -1): Tensor { return this.op("vecdot", [b], [whole(dim)]); }
  mv(v: Tensor): Tensor { return this.op("mv", [v]); }
  /** All products of two vectors. */
  outer(b: Tensor): Tensor { return this.op("outer", [b]); }
  /** Of vectors of 3 along dim. */
  cross(b: Tensor, dim = -1): Tensor { return this.op("cross", [b], [whole(dim)]); }
  /** Sums over pairs of dims of this and of b. */
  tensordot(b: Tensor, dims: number[], dimsOfB: number[]): Tensor {
    return this.op("tensordot", [b], pairs(dims, dimsOfB));
  }
  /** The Kronecker product, of tensors of one rank, 3 at most. */
  kron(b: Tensor): Tensor { return this.op("kron", [b]); }
  /** Of [variables, observations]: covariances, divided by observations - correction. */
  cov(correction = 1): Tensor { return this.op("cov", [], [correction]); }
  /** The same divided by both deviations: correlations, from -1 to 1. */
  corrcoef(): Tensor { return this.op("corrcoef"); }
  /** The sum of a diagonal of the last two dims. */
  trace(offset = 0): Tensor { return this.op("trace", [], [whole(offset)]); }
  /** The discrete Fourier transform along dim of [.., 1] (real) or [.., 2]: [.., 2]; length: of dim,
   * cut off or zero-padded; onesided: the first half. */
  dft(dim = -2, length = 0, inverse = false, onesided = false): Tensor {
    return this.op("dft", [], [whole(dim), whole(length), Number(inverse), Number(onesided)]);
  }
  /** this [.., k] weight^T + bias: weight [n, k] of any dtype, blocks included. */
  linear(weight: Tensor, bias?: Tensor): Tensor { return this.op("linear", [weight, bias ?? NONE]); }
  /** The same with a weight of its own for each row, see `wick_linear_experts`. */
  linearExperts(weight: Tensor, ids: Tensor, bias?: Tensor): Tensor {
    return this.op("linear_experts", [weight, bias ?? NONE, ids]);
  }
  /** Rows of this weight [n, k]: [ids.., k]. */
  embedding(ids: Tensor): Tensor { return this.op("embedding", [ids]); }

  // --- Transformers ---

  rope(options: RopeOptions = {}): Tensor {
    const { rotaryDim = 0, theta = 0, scaleFactor = 0, offset = 0, interleaved = false } = options;
    return this.op("rope", [options.positions ?? NONE],
                   [whole(rotaryDim), theta, scaleFactor, whole(offset), Number(interleaved),
                    layoutNumber(options.layout)]);
  }
  /** The same with given tables, [time, r / 2] or [batch, time, r / 2]. */
  ropeTable(cos: Tensor, sin: Tensor, interleaved = false, layout?: RopeLayout): Tensor {
    return this.op("rope_table", [cos, sin], [Number(interleaved), layoutNumber(layout)]);
  }
  /** This q [b, h, t, d], k [b, g, s, d], v [b, g, s, e]: [b, h, t, e]. */
  attention(k: Tensor, v: Tensor, options: AttentionOptions = {}): Tensor {
    const { softcap = 0, window = 0, causal = false } = options;
    const scale = options.scale === 0 ? FLT_MIN : options.scale ?? 0;
    const { mask = NONE, bias = NONE, sinks = NONE, slopes = NONE } = options;
    return this.op("attention", [k, v, mask, bias, sinks, slopes],
                   [scale, softcap, whole(window), Number(causal)]);
  }
}
