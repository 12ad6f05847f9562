// usage: node run_ops.mjs FOLDER BACKEND PER_OP [OP...]   (a child of test_ops.mjs)
// Runs recorded cases on "cpu" or "webgpu", of each operation so many: sends the id of each before it
// begins, and in the end { nCases, failures, bytesLeft }. The case "hang" never ends.
import { Wick } from "../../web/dist/wick.js";
import { openWebGpu } from "./node_webgpu.mjs";
import { checkCase, share } from "./op_calls.mjs";
import { readFixtures } from "./op_fixtures.mjs";

const [folder, backend, perOp, ...chosen] = process.argv.slice(2);
const isGpu = backend === "webgpu";
const { cases, arrays } = readFixtures(folder);
const selected = share(cases.filter(({ op }) => chosen.length === 0 || chosen.includes(op)),
                       Number(perOp));

if (chosen.includes("hang")) {
  process.send("hang");
  for (;;);
}
const wick = await Wick.open({ backend, math: "exact", ...(isGpu && { gpu: await openWebGpu() }) });
await wick.sync();
const { bufferBytes } = await wick.stats();
const failures = [];
for (const recorded of selected) {
  process.send(recorded.id);
  await checkCase(wick, arrays, recorded, isGpu).catch(async (reason) => {
    failures.push(`${recorded.id}: ${reason.message}`);
    await wick.sync().catch(() => undefined);
  });
}
await wick.sync();
const bytesLeft = (await wick.stats()).bufferBytes - bufferBytes;
await wick.close();
process.send({ nCases: selected.length, failures, bytesLeft }, () => process.exit());
