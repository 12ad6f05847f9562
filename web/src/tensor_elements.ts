/** Operations on each element. */
import type { Tensor } from "./tensor.js";
import { TensorBase } from "./tensor_base.js";
import { whole } from "./values.js";
import type { ScalarDtype, StoredDtype } from "./tensor_types.js";

export class ElementTensor extends TensorBase {
  // --- Elementwise, of numbers: what overflows an integer type wraps ---

  abs(): Tensor { return this.op("abs"); }
  neg(): Tensor { return this.op("neg"); }
  sqr(): Tensor { return this.op("sqr"); }
  /** -1, 0 or 1. */
  sign(): Tensor { return this.op("sign"); }
  relu(): Tensor { return this.op("relu"); }
  reluSquared(): Tensor { return this.op("relu_squared"); }
  relu6(): Tensor { return this.op("relu6"); }
  /** this * mul + add. */
  affine(mul: number, add: number): Tensor { return this.op("affine", [], [mul, add]); }
  /** To [min, max], so to max where min is larger; NaN stays. */
  clamp(min: number, max: number): Tensor { return this.op("clamp", [], [min, max]); }

  /**
   * Operands are promoted to one dtype and broadcast by NumPy's rule, as for all operations of two.
   * A number becomes the other operand's dtype, in which it must have a value; beside none it
   * becomes f32.
   */
  add(b: Tensor | number): Tensor { return this.mixed("add", this, b); }
  sub(b: Tensor | number): Tensor { return this.mixed("sub", this, b); }
  mul(b: Tensor | number): Tensor { return this.mixed("mul", this, b); }
  /** Integers truncate toward zero; there x / 0 is x. */
  div(b: Tensor | number): Tensor { return this.mixed("div", this, b); }
  /** The same rounded down; integers: x / 0 is x. */
  floorDivide(b: Tensor | number): Tensor { return this.mixed("floor_divide", this, b); }
  /** What a division leaves: `remainder` rounded down, with the sign of b, `fmod` toward zero, with
   * that of this. Integers: 0 of a division by 0. */
  remainder(b: Tensor | number): Tensor { return this.mixed("remainder", this, b); }
  fmod(b: Tensor | number): Tensor { return this.mixed("fmod", this, b); }
  maximum(b: Tensor | number): Tensor { return this.mixed("maximum", this, b); }
  minimum(b: Tensor | number): Tensor { return this.mixed("minimum", this, b); }
  /** Comparisons give u8, 0 or 1. */
  eq(b: Tensor | number): Tensor { return this.mixed("eq", this, b); }
  ne(b: Tensor | number): Tensor { return this.mixed("ne", this, b); }
  lt(b: Tensor | number): Tensor { return this.mixed("lt", this, b); }
  le(b: Tensor | number): Tensor { return this.mixed("le", this, b); }
  gt(b: Tensor | number): Tensor { return this.mixed("gt", this, b); }
  ge(b: Tensor | number): Tensor { return this.mixed("ge", this, b); }
  /** |this - b| <= atol + rtol |b|, and where both are the same infinity (or NaN): u8. */
  isClose(b: Tensor, rtol = 1e-5, atol = 1e-8, equalNan = false): Tensor {
    return this.op("is_close", [b], [rtol, atol, Number(equalNan)]);
  }
  /** Whether that holds of all elements: a scalar. */
  allClose(b: Tensor, rtol = 1e-5, atol = 1e-8, equalNan = false): Tensor {
    return this.op("all_close", [b], [rtol, atol, Number(equalNan)]);
  }
  /** u8: NaN; infinite; neither; negative or -0. */
  isNan(): Tensor { return this.op("is_nan"); }
  isInf(): Tensor { return this.op("is_inf"); }
  isFinite(): Tensor { return this.op("is_finite"); }
  signbit(): Tensor { return this.op("signbit"); }
  /** u8 of any dtypes: what is not zero is true. */
  logicalNot(): Tensor { return this.op("logical_not"); }
  logicalAnd(b: Tensor): Tensor { return this.op("logical_and", [b]); }
  logicalOr(b: Tensor): Tensor { return this.op("logical_or", [b]); }
  logicalXor(b: Tensor): Tensor { return this.op("logical_xor", [b]); }
  /** Of the bits of integers, and of bools. */
  bitwiseNot(): Tensor { return this.op("bitwise_not"); }
  bitwiseAnd(b: Tensor | number): Tensor { return this.mixed("bitwise_and", this, b); }
  bitwiseOr(b: Tensor | number): Tensor { return this.mixed("bitwise_or", this, b); }
  bitwiseXor(b: Tensor | number): Tensor { return this.mixed("bitwise_xor", this, b); }
  /** Bits moved b places; to the right the sign fills up. */
  bitwiseLeftShift(b: Tensor | number): Tensor {
    return this.mixed("bitwise_left_shift", this, b);
  }
  bitwiseRightShift(b: Tensor | number): Tensor {
    return this.mixed("bitwise_right_shift", this, b);
  }
  /** a where this (u8, bool or i64) is not zero, else b. */
  where(a: Tensor | number, b: Tensor | number): Tensor {
    return this.mixed("where", undefined, a, b);
  }
  /** Keeps what lies on and below a diagonal of the last two dims. */
  tril(diagonal = 0): Tensor { return this.op("tril", [], [whole(diagonal)]); }
  /** Keeps what lies on and above it. */
  triu(diagonal = 0): Tensor { return this.op("triu", [], [whole(diagonal)]); }

  // --- Elementwise, of floats ---

  exp(): Tensor { return this.op("exp"); }
  log(): Tensor { return this.op("log"); }
  sin(): Tensor { return this.op("sin"); }
  cos(): Tensor { return this.op("cos"); }
  tan(): Tensor { return this.op("tan"); }
  asin(): Tensor { return this.op("asin"); }
  acos(): Tensor { return this.op("acos"); }
  atan(): Tensor { return this.op("atan"); }
  /** Angle of the point (b, this), -pi to pi. */
  atan2(b: Tensor | number): Tensor { return this.mixed("atan2", this, b); }
  sinh(): Tensor { return this.op("sinh"); }
  cosh(): Tensor { return this.op("cosh"); }
  asinh(): Tensor { return this.op("asinh"); }
  acosh(): Tensor { return this.op("acosh"); }
  atanh(): Tensor { return this.op("atanh"); }
  /** e^x - 1, 2^x; log(1 + x), and logarithms to base 2 and 10. */
  expm1(): Tensor { return this.op("expm1"); }
  exp2(): Tensor { return this.op("exp2"); }
  log1p(): Tensor { return this.op("log1p"); }
  log2(): Tensor { return this.op("log2"); }
  log10(): Tensor { return this.op("log10"); }
  /** log(e^this + e^b), without its overflow. */
  logaddexp(b: Tensor | number): Tensor { return this.mixed("logaddexp", this, b); }
  /** 1 / x. */
  recip(): Tensor { return this.op("recip"); }
  sqrt(): Tensor { return this.op("sqrt"); }
  /** 1 / sqrt(x). */
  rsqrt(): Tensor { return this.op("rsqrt"); }
  /** sqrt(this^2 + b^2), without its overflow. */
  hypot(b: Tensor | number): Tensor { return this.mixed("hypot", this, b); }
  /** |this| with the sign of b. */
  copysign(b: Tensor | number): Tensor { return this.mixed("copysign", this, b); }
  /** The number of the dtype that follows on the way to b; computed on the CPU. */
  nextafter(b: Tensor | number): Tensor { return this.mixed("nextafter", this, b); }
  erf(): Tensor { return this.op("erf"); }
  tanh(): Tensor { return this.op("tanh"); }
  sigmoid(): Tensor { return this.op("sigmoid"); }
  floor(): Tensor { return this.op("floor"); }
  ceil(): Tensor { return this.op("ceil"); }
  /** Toward zero. */
  trunc(): Tensor { return this.op("trunc"); }
  /** Half to even. */
  round(): Tensor { return this.op("round"); }
  pow(exponent: Tensor | number): Tensor {
    return typeof exponent === "number" ? this.op("powf", [], [exponent])
      : this.op("pow", [exponent]);
  }
  silu(): Tensor { return this.op("silu"); }
  /** By tanh; `geluErf` is the exact one. */
  gelu(): Tensor { return this.op("gelu"); }
  geluErf(): Tensor { return this.op("gelu_erf"); }
  quickGelu(): Tensor { return this.op("quick_gelu"); }
  softplus(): Tensor { return this.op("softplus"); }
  mish(): Tensor { return this.op("mish"); }
  hardSigmoid(): Tensor { return this.op("hard_sigmoid"); }
  hardSwish(): Tensor { return this.op("hard_swish"); }
  elu(alpha = 1): Tensor { return this.op("elu", [], [alpha]); }
  leakyRelu(slope = 0.01): Tensor { return this.op("leaky_relu", [], [slope]); }
  selu(): Tensor { return this.op("selu"); }
  celu(alpha = 1): Tensor { return this.op("celu", [], [alpha]); }
  /** x / (1 + |x|). */
  softsign(): Tensor { return this.op("softsign"); }
  /** To [-1, 1]. */
  hardTanh(): Tensor { return this.op("hard_tanh"); }
  logSigmoid(): Tensor { return this.op("log_sigmoid"); }
  /** Gated units: silu, gelu, geluErf or relu of this, times up. */
  swiglu(up: Tensor): Tensor { return this.op("swiglu", [up]); }
  geglu(up: Tensor): Tensor { return this.op("geglu", [up]); }
  gegluErf(up: Tensor): Tensor { return this.op("geglu_erf", [up]); }
  reglu(up: Tensor): Tensor { return this.op("reglu", [up]); }
  /** g * sigmoid(alpha g) * (u + 1), g = min(this, limit), u = clamp(up, -limit, limit). */
  swigluClamped(up: Tensor, alpha: number, limit: number): Tensor {
    return this.op("swiglu_clamped", [up], [alpha, limit]);
  }
  /** this + weight (b - this). */
  lerp(b: Tensor | number, weight: Tensor | number): Tensor {
    return this.mixed("lerp", this, b, weight);
  }
  /** With these numbers in place of NaN, infinity and -infinity. */
  nanToNum(nan: number, inf: number, minusInf: number): Tensor {
    return this.op("nan_to_num", [], [nan, inf, minusInf]);
  }

  /** Between all dtypes; also from the types of blocks. */
  cast(dtype: ScalarDtype | StoredDtype): Tensor {
    return this.commands.op("cast", [this], [], dtype);
  }

  // --- In place ---

  /** Every element becomes value. */
  fill(value: number): this { return this.inPlace("fill", [], [value]); }
  /** Becomes src, broadcast and cast. */
  copy(src: Tensor): this { return this.inPlace("copy", [src]); }
  /** This cache [b, h, s, d] receives fresh [b, h, t, d] at position along dim 2. */
  kvAppend(fresh: Tensor, position: number): this {
    return this.inPlace("kv_append", [fresh], [whole(position)]);
  }

  /**
   * Each becomes its function; numbers become this dtype. What cannot hold the result, or shows an
   * element twice, is refused.
   */
  addInPlace(b: Tensor | number): this { return this.inPlace("add_in_place", [b]); }
  subInPlace(b: Tensor | number): this { return this.inPlace("sub_in_place", [b]); }
  mulInPlace(b: Tensor | number): this { return this.inPlace("mul_in_place", [b]); }
  divInPlace(b: Tensor | number): this { return this.inPlace("div_in_place", [b]); }
  maximumInPlace(b: Tensor | number): this { return this.inPlace("maximum_in_place", [b]); }
  minimumInPlace(b: Tensor | number): this { return this.inPlace("minimum_in_place", [b]); }
  /** this * mul + add. */
  affineInPlace(mul: number, add: number): this {
    return this.inPlace("affine_in_place", [], [mul, add]);
  }
  clampInPlace(min: number, max: number): this {
    return this.inPlace("clamp_in_place", [], [min, max]);
  }
  absInPlace(): this { return this.inPlace("abs_in_place"); }
  negInPlace(): this { return this.inPlace("neg_in_place"); }
  sqrInPlace(): this { return this.inPlace("sqr_in_place"); }
  reluInPlace(): this { return this.inPlace("relu_in_place"); }
  expInPlace(): this { return this.inPlace("exp_in_place"); }
  logInPlace(): this { return this.inPlace("log_in_place"); }
  sqrtInPlace(): this { return this.inPlace("sqrt_in_place"); }
  tanhInPlace(): this { return this.inPlace("tanh_in_place"); }
  sigmoidInPlace(): this { return this.inPlace("sigmoid_in_place"); }
  siluInPlace(): this { return this.inPlace("silu_in_place"); }
  geluInPlace(): this { return this.inPlace("gelu_in_place"); }
  floorInPlace(): this { return this.inPlace("floor_in_place"); }
  ceilInPlace(): this { return this.inPlace("ceil_in_place"); }
  roundInPlace(): this { return this.inPlace("round_in_place"); }
}
