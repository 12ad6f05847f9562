// The package in Firefox, without WebGPU and with lavapipe as the GPU, which has f16. Firefox does
// not name adapters and knows no subgroups.
import assert from "node:assert/strict";
import { browsers } from "./browser.mjs";
import { testCpu, testStrictPage, testThreads, testWebGpu } from "./browser_checks.mjs";

if (browsers.includes("firefox")) {
  testCpu("firefox", /this browser has no WebGPU, or it is switched off/);
  testWebGpu("firefox", {
    checkAdapter: ({ f16, subgroups }) =>
      assert.deepEqual({ f16, subgroups }, { f16: true, subgroups: false }),
    families: ["llama", "gemma3", "gpt-oss", "qwen3moe", "mamba2", "deepseek2-v3"],
    gpuOptions: { f16: false },
    nAborts: 100,
  });
  testThreads("firefox", { mayNest: false });
  testStrictPage("firefox");
}
