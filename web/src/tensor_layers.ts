/** Layers of neural networks and losses. */
import { NONE, type Operand } from "./commands.js";
import type { Tensor } from "./tensor.js";
import { ArrayTensor } from "./tensor_arrays.js";
import {
  convNumbers, modeNumber, PAD_MODES, poolNumbers, REDUCTIONS, RESIZE_MODES,
} from "./tensor_numbers.js";
import type {
  ClassLossOptions, ConvOptions, ExpertWeights, PadMode, PoolOptions, Reduction, ResizeMode,
  RnnWeights, RouteOptions,
} from "./tensor_types.js";
import { whole, wholes } from "./values.js";

export class LayerTensor extends ArrayTensor {
  #conv(name: string, n: number, weight: Tensor, bias: Operand | undefined,
        options: ConvOptions): Tensor {
    return this.op(name, [weight, bias ?? NONE], convNumbers(name, n, options));
  }

  #recur(name: string, { wIh, wHh, bIh, bHh, peepholes, resetsBefore }: RnnWeights,
         state: (Tensor | undefined)[]): Tensor[] {
    const optional = [bIh, bHh, peepholes, ...state].map((x) => x ?? NONE);
    return this.ops(name, [wIh, wHh, ...optional], [Number(!!resetsBefore)],
                    1 + state.length);
  }

  #loss(name: string, target: Tensor, reduction: Reduction, ...more: number[]): Tensor {
    return this.op(name, [target], [modeNumber(REDUCTIONS, reduction), ...more]);
  }

  // --- Convolution: of [n, c, ..] with zeros around ---

  /** this [n, c, w], weight [m, c / groups, kw], bias [m]: cross-correlation, [n, m, ow]. */
  conv1d(weight: Tensor, bias?: Tensor, options: ConvOptions = {}): Tensor {
    return this.#conv("conv1d", 1, weight, bias, options);
  }
  /** this [n, c, h, w], weight [m, c / groups, kh, kw]. */
  conv2d(weight: Tensor, bias?: Tensor, options: ConvOptions = {}): Tensor {
    return this.#conv("conv2d", 2, weight, bias, options);
  }
  /** this [n, c, d, h, w], weight [m, c / groups, kd, kh, kw]. */
  conv3d(weight: Tensor, bias?: Tensor, options: ConvOptions = {}): Tensor {
    return this.#conv("conv3d", 3, weight, bias, options);
  }
  /** The gradient of conv1d with respect to its operand: weight [c, m / groups, kw]. */
  convTranspose1d(weight: Tensor, bias?: Tensor, options: ConvOptions = {}): Tensor {
    return this.#conv("conv_transpose1d", 1, weight, bias, options);
  }
  convTranspose2d(weight: Tensor, bias?: Tensor, options: ConvOptions = {}): Tensor {
    return this.#conv("conv_transpose2d", 2, weight, bias, options);
  }
  convTranspose3d(weight: Tensor, bias?: Tensor, options: ConvOptions = {}): Tensor {
    return this.#conv("conv_transpose3d", 3, weight, bias, options);
  }

  // --- Pooling: over the last dims, of which there is one more at least ---

  /** The largest element of each window. */
  maxPool1d(kernel: number | number[], options: PoolOptions = {}): Tensor {
    return this.op("max_pool1d", [], poolNumbers("max_pool1d", 1, kernel, options));
  }
  maxPool2d(kernel: number | number[], options: PoolOptions = {}): Tensor {
    return this.op("max_pool2d", [], poolNumbers("max_pool2d", 2, kernel, options));
  }
  maxPool3d(kernel: number | number[], options: PoolOptions = {}): Tensor {
    return this.op("max_pool3d", [], poolNumbers("max_pool3d", 3, kernel, options));
  }
  /** With u32 indices of where they are, row by row over the pooled dims, of equal ones the first. */
  maxPool1dWithIndices(kernel: number | number[],
                       options: PoolOptions = {}): { values: Tensor; indices: Tensor } {
    return this.pairOf("max_pool1d", poolNumbers("max_pool1d", 1, kernel, options));
  }
  maxPool2dWithIndices(kernel: number | number[],
                       options: PoolOptions = {}): { values: Tensor; indices: Tensor } {
    return this.pairOf("max_pool2d", poolNumbers("max_pool2d", 2, kernel, options));
  }
  maxPool3dWithIndices(kernel: number | number[],
                       options: PoolOptions = {}): { values: Tensor; indices: Tensor } {
    return this.pairOf("max_pool3d", poolNumbers("max_pool3d", 3, kernel, options));
  }
  /** The mean of each window. */
  avgPool1d(kernel: number | number[], options: PoolOptions = {}): Tensor {
    return this.op("avg_pool1d", [], poolNumbers("avg_pool1d", 1, kernel, options));
  }
  avgPool2d(kernel: number | number[], options: PoolOptions = {}): Tensor {
    return this.op("avg_pool2d", [], poolNumbers("avg_pool2d", 2, kernel, options));
  }
  avgPool3d(kernel: number | number[], options: PoolOptions = {}): Tensor {
    return this.op("avg_pool3d", [], poolNumbers("avg_pool3d", 3, kernel, options));
  }
  /** The last dims, 1 to 3, get these extents: means (largest) of parts of about one size. */
  adaptiveAvgPool(size: number[]): Tensor { return this.op("adaptive_avg_pool", [], wholes(size)); }
  adaptiveMaxPool(size: number[]): Tensor { return this.op("adaptive_max_pool", [], wholes(size)); }

  // --- Resizing ---

  /** The last dims, 1 to 3, get these extents; alignCorners: the ends stay where they are. */
  resize(size: number[], mode: ResizeMode = "nearest", alignCorners = false): Tensor {
    return this.op("resize", [], [modeNumber(RESIZE_MODES, mode), Number(alignCorners),
                                  ...wholes(size)]);
  }

  /** The same where an output that is smaller takes in all elements on its way (a triangle, or a
   * cubic function of `a`), each of whose weights is shared; repeatsEnds: one that is not there is
   * that at the end. */
  resizeAntialiased(size: number[], mode: "linear" | "cubic" = "linear", a = -0.5,
                    repeatsEnds = false): Tensor {
    return this.op("resize_antialiased", [], [modeNumber(RESIZE_MODES, mode), a,
                                              Number(repeatsEnds), ...wholes(size)]);
  }

  // --- Sampling ---

  /** this [n, c, h, w] or [n, c, d, h, w] at the places of grid [n, .., 2] or [n, .., 3], x first,
   * from -1 to 1: [n, c, ..]. padding: what lies outside, zeros or as `pad`
   * has it; alignCorners: -1 and 1 are the middles of the first and last elements, else ends. */
  gridSample(grid: Tensor, mode: ResizeMode = "linear",
             padding: Exclude<PadMode, "circular"> = "constant", alignCorners = false): Tensor {
    return this.op("grid_sample", [grid], [modeNumber(RESIZE_MODES, mode),
                                           modeNumber(PAD_MODES, padding), Number(alignCorners)]);
  }
  /** Boxes [r, 4] (x0, y0, x1, y1) of samples batch [r] of this [n, c, h, w]: [r, c, ..size], the
   * means of samplingRatio places in each direction, or with isLargest ONNX's maxima. Boxes are
   * multiplied by scale and, if aligned, begin half an element earlier. */
  roiAlign(boxes: Tensor, batch: Tensor, size: [number, number], samplingRatio = 2, scale = 1,
           aligned = true, isLargest = false): Tensor {
    return this.op("roi_align", [boxes, batch], [...wholes(size), whole(samplingRatio), scale,
                                                 Number(isLargest), Number(!aligned)]);
  }

  // --- Normalisation: of [n, c, ..] over all elements of a channel, or of a group of them ---

  /** Each of `groups` parts of the channels of a sample, then * weight + bias, [c]. */
  groupNorm(groups: number, weight?: Tensor, bias?: Tensor, eps = 1e-5): Tensor {
    return this.op("group_norm", [weight ?? NONE, bias ?? NONE], [whole(groups), eps]);
  }
  /** Each channel of a sample. */
  instanceNorm(weight?: Tensor, bias?: Tensor, eps = 1e-5): Tensor {
    return this.op("instance_norm", [weight ?? NONE, bias ?? NONE], [eps]);
  }
  /** Each channel, by these means and variances; all operands [c]. */
  batchNorm(mean: Tensor, variance: Tensor, weight?: Tensor, bias?: Tensor, eps = 1e-5): Tensor {
    return this.op("batch_norm", [mean, variance, weight ?? NONE, bias ?? NONE], [eps]);
  }
  /** Each channel, by those of this batch, of which the running ones (both, or none) take up the
   * share momentum in place. */
  batchNormTrain(runningMean?: Tensor, runningVariance?: Tensor, weight?: Tensor, bias?: Tensor,
                 momentum = 0.1, eps = 1e-5): Tensor {
    return this.op("batch_norm_train", [runningMean ?? NONE, runningVariance ?? NONE,
                                        weight ?? NONE, bias ?? NONE], [eps, momentum]);
  }
  /** Divided by (k + alpha / size * the sum of squares of `size` channels around)^beta. */
  localResponseNorm(size: number, alpha = 1e-4, beta = 0.75, k = 1): Tensor {
    return this.op("local_response_norm", [], [whole(size), alpha, beta, k]);
  }
  /** Divided by its length along dim, or by eps where that is less. */
  normalize(dim = -1, eps = 1e-12): Tensor { return this.op("normalize", [], [whole(dim), eps]); }

  // --- Recurrent networks: one layer, in one direction ---

  /** this [b, t, i], h0 and c0 [b, h] (default: zeros): all h [b, t, h], the last h and c. */
  lstm(weights: RnnWeights, h0?: Tensor, c0?: Tensor): Record<"output" | "h" | "c", Tensor> {
    const [output, h, c] = this.#recur("lstm", weights, [h0, c0]);
    return { output: output!, h: h!, c: c! };
  }
  gru(weights: RnnWeights, h0?: Tensor): Record<"output" | "h", Tensor> {
    const [output, h] = this.#recur("gru", weights, [h0]);
    return { output: output!, h: h! };
  }
  /** h' = tanh(W x + b + U h + c). */
  rnn(weights: RnnWeights, h0?: Tensor): Record<"output" | "h", Tensor> {
    const [output, h] = this.#recur("rnn", weights, [h0]);
    return { output: output!, h: h! };
  }

  // --- Dropout and losses ---

  /** While training, 0 with probability p, else x / (1 - p). */
  dropout(p = 0.5, train = true): Tensor { return this.op("dropout", [], [p, Number(train)]); }
  /** Of logits [n, c, ..] or [c]. target: indices of classes [n, ..] (integers), or
   * probabilities in the shape of this. */
  crossEntropy(target: Tensor, options: ClassLossOptions = {}): Tensor {
    return this.#classLoss("cross_entropy", target, options);
  }
  /** The same of logarithms of probabilities, with indices. */
  nll(target: Tensor, options: Omit<ClassLossOptions, "labelSmoothing"> = {}): Tensor {
    return this.#classLoss("nll", target, options);
  }
  /** (this - target)^2 and |this - target|, of one shape, as what follows. */
  mse(target: Tensor, reduction: Reduction = "mean"): Tensor {
    return this.#loss("mse", target, reduction);
  }
  l1(target: Tensor, reduction: Reduction = "mean"): Tensor {
    return this.#loss("l1", target, reduction);
  }
  /** d^2 / 2 where d = |this - target| < delta, else delta (d - delta / 2). */
  huber(target: Tensor, delta = 1, reduction: Reduction = "mean"): Tensor {
    return this.#loss("huber", target, reduction, delta);
  }
  /** The same divided by delta. */
  smoothL1(target: Tensor, delta = 1, reduction: Reduction = "mean"): Tensor {
    return this.#loss("smooth_l1", target, reduction, delta);
  }
  /** -(target log(x) + (1 - target) log(1 - x)). */
  bce(target: Tensor, reduction: Reduction = "mean"): Tensor {
    return this.#loss("bce", target, reduction);
  }
  /** The same of x = sigmoid(this); posWeight multiplies the first term. */
  bceWithLogits(target: Tensor, reduction: Reduction = "mean", posWeight?: Tensor): Tensor {
    return this.op("bce_with_logits", [target, posWeight ?? NONE],
                   [modeNumber(REDUCTIONS, reduction)]);
  }
  /** target (log(target) - x) of logarithms x; isLog: target is one, too. */
  klDiv(target: Tensor, reduction: Reduction = "mean", isLog = false): Tensor {
    return this.#loss("kl_div", target, reduction, Number(isLog));
  }
  /** The cosine of the angle to b along dim; they broadcast. */
  cosineSimilarity(b: Tensor, dim = -1, eps = 1e-8): Tensor {
    return this.op("cosine_similarity", [b], [whole(dim), eps]);
  }

  #classLoss(name: string, target: Tensor, options: ClassLossOptions): Tensor {
    const { weight = NONE, labelSmoothing = 0, ignoredIndex, reduction = "mean" } = options;
    return this.op(name, [target, weight],
                   [modeNumber(REDUCTIONS, reduction), labelSmoothing,
                    Number(ignoredIndex !== undefined), whole(ignoredIndex ?? 0)]);
  }

  // --- Mixtures of experts ---

  /** Of logits [t, e]: weights [t, topK] of the best experts, the largest first, and u32 ids. */
  moeRoute(topK: number, options: RouteOptions = {}): { weights: Tensor; ids: Tensor } {
    const { bias = NONE, score = "softmax", topkFirst = false, renormalize = false } = options;
    const isSigmoid = modeNumber(["softmax", "sigmoid"], score);
    const [weights, ids] = this.ops("moe_route", [bias],
                                    [whole(topK), isSigmoid, Number(topkFirst),
                                     Number(renormalize), options.scale ?? 1], 2);
    return { weights: weights!, ids: ids! };
  }
  /** this [t, d], route weights and ids [t, u]: down(silu(gate x) * up x) of each expert, weighted
   * and added up, plus that of the shared one. */
  moeFfn(routeWeights: Tensor, ids: Tensor, weights: ExpertWeights): Tensor {
    const { gate, up, down, sharedGate = NONE, sharedUp = NONE, sharedDown = NONE } = weights;
    return this.op("moe_ffn",
                   [routeWeights, ids, gate, up, down, sharedGate, sharedUp, sharedDown]);
  }
}
