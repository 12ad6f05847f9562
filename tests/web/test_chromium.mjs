// The package in Chromium, without a GPU and with SwiftShader as one, which has no f16.
import assert from "node:assert/strict";
import { testCpu, testStrictPage, testThreads, testWebGpu } from "./browser_checks.mjs";

testCpu("chromium", /the browser has WebGPU, but offers no GPU/);
testWebGpu("chromium", {
  checkAdapter: ({ name, f16, subgroups }) =>
    assert.deepEqual({ name, f16, subgroups },
                     { name: "swiftshader", f16: false, subgroups: true }),
  families: ["llama"],
  gpuOptions: { subgroups: false, defaultLimits: true },
  nAborts: 25,
});
testThreads("chromium", { mayNest: true });
testStrictPage("chromium");
