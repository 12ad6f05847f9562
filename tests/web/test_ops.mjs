// Every operation on tensors gives what other software gave for the recorded cases, on the CPU and
// on WebGPU, and refuses what it refused. OPS=add,exp runs these alone.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { Wick } from "../../web/dist/wick.js";
import { testsAll } from "./fixtures.mjs";
import { missing, openWebGpu } from "./node_webgpu.mjs";
import { difference, makeInputs, operations, readFixtures } from "./op_fixtures.mjs";

const fixtures = readFixtures();
const noFixtures = fixtures ? undefined : "the recorded cases of shared/data/ops are not here";
const chosen = process.env.OPS?.split(",");
const cases = (fixtures?.cases ?? []).filter(({ op }) =>
  op in operations && (chosen?.includes(op) ?? true));
/** Software compiles a kernel for seconds: of each operation some cases. */
const CASES_ON_GPU = chosen ? Infinity : testsAll ? 2 : 1;

/** bool and u8 stand for each other. */
const stored = (dtype) => (dtype === "bool" ? "u8" : dtype);

async function checkOutputs(results, recorded, isGpu) {
  assert.equal(results.length, recorded.outputs.length, "the number of results");
  for (const [i, name] of recorded.outputs.entries()) {
    const expected = fixtures.arrays.get(name);
    const { dtype, shape } = await results[i].describe();
    assert.deepEqual([stored(dtype), shape], [stored(expected.dtype), expected.shape]);
    assert.equal(difference(await results[i].read(), expected, recorded, isGpu), undefined);
  }
}

async function checkRefusal(run, { error }) {
  await assert.rejects(async () => {
    for (const result of await run()) await result.read();
  }, (reason) => reason.code?.toLowerCase() === error);
}

function checkCase(wick, recorded, isGpu) {
  return wick.scope(async () => {
    const inputs = makeInputs(wick, fixtures.arrays, recorded);
    const run = async () => [].concat(await operations[recorded.op](inputs, recorded.attrs, wick));
    if (recorded.error) await checkRefusal(run, recorded);
    else await checkOutputs(await run(), recorded, isGpu);
  });
}

function casesFor(isGpu) {
  const counts = new Map();
  return cases.filter(({ op }) => {
    counts.set(op, (counts.get(op) ?? 0) + 1);
    return !isGpu || counts.get(op) <= CASES_ON_GPU;
  });
}

async function checkAll(t, wick, isGpu) {
  const failures = [];
  const selected = casesFor(isGpu);
  for (const recorded of selected) {
    try {
      await checkCase(wick, recorded, isGpu);
    } catch (reason) {
      failures.push(`${recorded.id}: ${reason.message}`);
      await wick.sync().catch(() => undefined);
    }
  }
  t.diagnostic(`note: ${selected.length - failures.length} of ${selected.length} recorded cases`);
  assert.deepEqual(failures, []);
  await wick.sync();
  const { bufferBytes } = await wick.stats();
  await wick.close();
  return bufferBytes;
}

test("every operation has a door and is called by a method", () => {
  const read = (path) => readFileSync(new URL(`../../${path}`, import.meta.url)).toString();
  const headers = ["ops", "array"].map((name) => read(`include/wick/${name}.h`)).join();
  const declared = [...headers.matchAll(/^WICK_API [^(]*?\bwick_(\w+)\(/gm)]
    .map(([, name]) => name).filter((name) => name !== "squeeze"); // squeeze_dims is
  const doors = read("web/glue/tensors/ops.def");
  const methods = ["tensor", "tensor_maker"].map((file) => read(`web/src/${file}.ts`)).join();
  assert.ok(declared.length > 80);
  for (const name of declared) {
    assert.match(doors, new RegExp(`^(OP|PARTS)\\(${name},`, "m"));
    assert.match(methods, new RegExp(`"${name}"`));
  }
});

test("recorded cases on the CPU", { skip: noFixtures }, async (t) => {
  const bytes = await checkAll(t, await Wick.open({ backend: "cpu", math: "exact" }), false);
  assert.equal(bytes, 0);
});

test("recorded cases on WebGPU", { skip: noFixtures ?? missing }, async (t) => {
  const gpu = await openWebGpu();
  const wick = await Wick.open({ backend: "webgpu", gpu, math: "exact" });
  await wick.sync();
  const { bufferBytes } = await wick.stats();
  assert.equal(await checkAll(t, wick, true), bufferBytes);
});

// Dawn keeps the process alive, and has work in flight that is not to be cut.
test.after(() => setImmediate(() => process.exit()));
