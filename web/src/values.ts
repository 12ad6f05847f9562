/** Elements of tensors as JavaScript has them, by dtype. */
import { kindOf, WickError } from "./errors.js";
import type {
  Dtype, NestedNumbers, ScalarDtype, StoredDtype, TensorData, TensorInfo, TensorValues,
} from "./tensor_types.js";

/** Elements of a text, and how many are shown at each end of a dimension that is cut. */
const MOST_SHOWN = 1000, EDGE = 3;

type Values = TensorValues | Uint16Array;

interface ValuesClass {
  new (buffer: ArrayBuffer): Values;
  readonly BYTES_PER_ELEMENT: number;
}

/** What elements of a dtype come from, and come back as. */
const CLASSES: Record<ScalarDtype | StoredDtype, ValuesClass> = {
  f32: Float32Array, f16: Float32Array, bf16: Float32Array, f64: Float64Array, i64: BigInt64Array,
  i32: Int32Array, i16: Int16Array, i8: Int8Array, u32: Uint32Array, u8: Uint8Array,
  bool: Uint8Array, f8_e4m3: Float32Array, f8_e5m2: Float32Array,
};

/** Those of numbers, for sentences. */
export const NUMBER_DTYPES = Object.keys(CLASSES).join(", ");

const hasClass = (dtype: Dtype): dtype is ScalarDtype | StoredDtype => dtype in CLASSES;

const isStored = (dtype: Dtype): boolean => dtype.startsWith("f8_");

/** Floats that JavaScript has no array of: they come from f32, and come back as it. */
export const isNarrow = (dtype: Dtype): boolean => isHalf(dtype) || isStored(dtype);

/** The kind of array that holds a dtype's elements bit by bit. */
export const arrayOf = (dtype: Dtype): string =>
  isHalf(dtype) ? "Uint16Array"
    : hasClass(dtype) && !isStored(dtype) ? CLASSES[dtype].name : "Uint8Array";

/** Whether a dtype has this value, floats as nearly as they can. */
export function hasValue(dtype: Dtype, value: number | bigint): boolean {
  const span = 2 ** (parseInt(dtype.slice(1)) || 1), least = dtype.startsWith("i") ? -span / 2 : 0;
  const isWhole = typeof value === "bigint" || Number.isInteger(value);
  return dtype.includes("f") || (isWhole && value >= least && value < least + span);
}

/** A whole number, such as a dim or an extent. */
export function whole(value: number): number {
  if (Number.isSafeInteger(value)) return value;
  throw new WickError("ARGUMENT", `a dim, extent or position must be a whole number, not ${value}`);
}

/** Tokens as the module takes them. */
export function tokenIds(tokens: Iterable<number>): Uint32Array {
  if (typeof tokens !== "object" || tokens === null || !(Symbol.iterator in tokens))
    throw new WickError("ARGUMENT", `token ids (or a text) are wanted, not ${kindOf(tokens)}`);
  return Uint32Array.from(tokens, (id) => {
    if (id === id >>> 0) return id;
    throw new WickError("INDEX", `${id} is no token`);
  });
}

/** Dims, or the extents of a shape. */
export function wholes(values: number[]): number[] {
  if (Array.isArray(values)) return values.map(whole);
  throw new WickError("ARGUMENT", `a shape is an array of whole numbers, not ${kindOf(values)}`);
}

/** A copy of an array's bytes. */
export function bytesOf(values: Values): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength).slice();
}

/** bytes: as a tensor is read. */
export function valuesOf(dtype: Dtype, bytes: Uint8Array): TensorValues {
  const Class = hasClass(dtype) ? CLASSES[dtype] : Uint8Array;
  return new Class(bytes.buffer as ArrayBuffer) as TensorValues;
}

/** A tensor to be made: `bytes` are of dtype `given`, and become `dtype`. */
export interface NewTensor {
  dtype: Dtype;
  given: Dtype;
  shape: number[];
  bytes: Uint8Array;
}

/** shape undefined: of one dim, or as the arrays are nested; dtype undefined: as the values are. */
export function newTensor(data: TensorData, shape?: number[], dtype?: Dtype): NewTensor {
  if (ArrayBuffer.isView(data)) {
    const given = dtypeOf(data, dtype);
    return { dtype: dtype ?? given, given, bytes: bytesOf(data),
             shape: wholes(shape ?? [data.length]) };
  }
  const to = dtype ?? "f32";
  if (!hasClass(to))
    throw new WickError("DTYPE", `the dtype of numbers is one of ${NUMBER_DTYPES}, not ${to}; `
      + "blocks, such as q4_0, are given as a Uint8Array");
  return { dtype: to, given: isNarrow(to) ? "f32" : to, bytes: bytesOf(elements(flat(data), to)),
           shape: wholes(shape ?? shapeOf(data)) };
}

/** Of bool each number that is not zero is true; other dtypes must have a value for it. */
function elements(numbers: (number | bigint)[], dtype: ScalarDtype | StoredDtype): Values {
  if (dtype === "bool") return Uint8Array.from(numbers, (value) => Number(value != 0));
  for (const value of numbers)
    if (!hasValue(dtype, value))
      throw new WickError("VALUE", `tensor: ${value} is no number of ${dtype}`);
  return dtype === "i64" ? BigInt64Array.from(numbers, BigInt)
    : (CLASSES[dtype] as unknown as Float32ArrayConstructor).from(numbers, Number);
}

const isHalf = (dtype: Dtype | undefined): boolean => dtype === "f16" || dtype === "bf16";

/** Of what an array holds; dtype: what it is to become. */
function dtypeOf(data: Values, dtype: Dtype | undefined): Dtype {
  if (data instanceof Uint16Array) {
    if (isHalf(dtype)) return dtype!;
    throw new WickError("DTYPE", "a Uint16Array holds the bits of f16 or bf16: say which");
  }
  if (data instanceof Uint8Array && dtype !== undefined && (!hasClass(dtype) || isStored(dtype)))
    return dtype;
  const found = (Object.keys(CLASSES) as ScalarDtype[])
    .find((name) => data instanceof CLASSES[name]);
  if (found) return found;
  throw new WickError("DTYPE", `no tensor is made of a ${data.constructor.name}`);
}

function flat(data: NestedNumbers): (number | bigint)[] {
  if (Array.isArray(data)) return (data as NestedNumbers[]).flatMap(flat);
  if (typeof data === "number" || typeof data === "bigint") return [data];
  if (typeof data === "boolean") return [Number(data)];
  throw new WickError("ARGUMENT", `a tensor is made of numbers, not of ${kindOf(data)}`);
}

function shapeOf(data: NestedNumbers): number[] {
  if (!Array.isArray(data)) return [];
  const inner = data.map(shapeOf);
  const first = inner[0] ?? [];
  if (inner.some((shape) => shape.join() !== first.join()))
    throw new WickError("SHAPE", "nested arrays of a tensor must have equal lengths");
  return [data.length, ...first];
}

/** Row by row, with an indent for each bracket; of many elements the edges alone. */
export function textOf({ dtype, shape }: TensorInfo, values: TensorValues): string {
  if (!hasClass(dtype))
    throw new WickError("DTYPE", `text: ${dtype} is of blocks, not of numbers: cast("f32") unpacks them`);
  const isCut = values.length > MOST_SHOWN;
  const write = (dim: number, at: number, stride: number): string => {
    if (dim === shape.length) return writeNumber(values[at]!, dtype);
    const n = shape[dim]!, step = stride / n;
    const parts = Array.from({ length: n }, (_, i) => i)
      .filter((i) => !isCut || n <= 2 * EDGE || i < EDGE || i >= n - EDGE)
      .map((i) => write(dim + 1, at + i * step, step));
    if (isCut && n > 2 * EDGE) parts.splice(EDGE, 0, "...");
    const isRow = dim === shape.length - 1;
    return `[${parts.join(isRow ? ", " : `,\n${" ".repeat(dim + 1)}`)}]`;
  };
  return `${write(0, 0, values.length)} ${dtype}[${shape.join(", ")}]`;
}

const writeNumber = (value: number | bigint, dtype: Dtype): string =>
  String(dtype.includes("f") && typeof value === "number" ? Number(value.toPrecision(6)) : value);
