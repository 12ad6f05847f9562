/** Filters of an image as kernels in WGSL, which the visitor may change. */
import type { Wick } from "libwick";

/** What each kernel begins with: pixels as numbers, and where a thread is. */
const HEAD = `struct Size { width: u32, height: u32 }
@group(0) @binding(0) var<storage, read_write> result: array<u32>;
@group(0) @binding(1) var<storage, read> image: array<u32>;
@group(0) @binding(2) var<uniform> size: Size;

// A pixel as red, green, blue and alpha, 0 to 1; past an edge the nearest one.
fn pixel(x: i32, y: i32) -> vec4f {
  let column = u32(clamp(x, 0, i32(size.width) - 1));
  let row = u32(clamp(y, 0, i32(size.height) - 1));
  return unpack4x8unorm(image[row * size.width + column]);
}

@compute @workgroup_size(WORKGROUP_X, WORKGROUP_Y)
fn main(@builtin(global_invocation_id) id: vec3u) {
  if (id.x >= size.width || id.y >= size.height) { return; }
  let colour = filtered(i32(id.x), i32(id.y));
  result[id.y * size.width + id.x] = pack4x8unorm(vec4f(colour.rgb, 1.0));
}
`;

/** The part that the visitor sees. */
export const FILTERS: Record<string, string> = {
  Sharpen: `fn filtered(x: i32, y: i32) -> vec4f {
  let around = pixel(x - 1, y) + pixel(x + 1, y) + pixel(x, y - 1) + pixel(x, y + 1);
  return 5.0 * pixel(x, y) - around;
}`,
  Edges: `fn light(x: i32, y: i32) -> f32 {
  return dot(pixel(x, y).rgb, vec3f(0.299, 0.587, 0.114));
}

fn filtered(x: i32, y: i32) -> vec4f {
  // Sobel's operator
  let across = light(x + 1, y - 1) + 2.0 * light(x + 1, y) + light(x + 1, y + 1)
    - light(x - 1, y - 1) - 2.0 * light(x - 1, y) - light(x - 1, y + 1);
  let down = light(x - 1, y + 1) + 2.0 * light(x, y + 1) + light(x + 1, y + 1)
    - light(x - 1, y - 1) - 2.0 * light(x, y - 1) - light(x + 1, y - 1);
  return vec4f(vec3f(length(vec2f(across, down))), 1.0);
}`,
  Blur: `fn filtered(x: i32, y: i32) -> vec4f {
  const radius = 6;
  var sum = vec4f(0.0);
  var weights = 0.0;
  for (var j = -radius; j <= radius; j++) {
    for (var i = -radius; i <= radius; i++) {
      let weight = exp(-f32(i * i + j * j) / 18.0);
      sum += weight * pixel(x + i, y + j);
      weights += weight;
    }
  }
  return sum / weights;
}`,
  Pencil: `fn light(x: i32, y: i32) -> f32 {
  return dot(pixel(x, y).rgb, vec3f(0.299, 0.587, 0.114));
}

fn filtered(x: i32, y: i32) -> vec4f {
  let around = (light(x - 2, y) + light(x + 2, y) + light(x, y - 2) + light(x, y + 2)) / 4.0;
  return vec4f(vec3f(smoothstep(-0.08, 0.01, light(x, y) - around)), 1.0);
}`,
};

const WORKGROUP = [16, 16];

/** Lines that stand before the visitor's own, for the compiler's messages. */
export const HEAD_LINES = HEAD.split("\n").length - 1;

/** The filtered pixels. What does not compile is an error with the compiler's words. */
export async function applyFilter(wick: Wick, image: ImageData, source: string,
                                  signal: AbortSignal): Promise<ImageData> {
  const { width, height, data } = image;
  const kernel = await wick.kernel({
    source: HEAD + source, label: "filter", workgroup: WORKGROUP, buffers: ["read_write", "read"],
    uniformBytes: 8,
  }, { signal });
  const pixels = wick.tensor(new Uint32Array(data.slice().buffer));
  const result = wick.empty([width * height], "u32");
  try {
    const groups = [Math.ceil(width / WORKGROUP[0]!), Math.ceil(height / WORKGROUP[1]!)];
    kernel.run([result, pixels], groups, Uint32Array.of(width, height));
    const values = await result.read({ signal });
    return new ImageData(new Uint8ClampedArray(values.buffer as ArrayBuffer), width, height);
  } finally {
    for (const made of [kernel, pixels, result]) made.dispose();
  }
}
