// The table of a report: medians of all rounds, and how the engines compare.

const MIB = 2 ** 20;

/** Of each measure: its name, how a value is shown, and whether less is better. */
const MEASURES = [
  ["prefill", "prefillTokensPerSecond", (v) => `${v.toFixed(1)} tokens/s`, false],
  ["decode", "decodeTokensPerSecond", (v) => `${v.toFixed(1)} tokens/s`, false],
  ["first token", "firstTokenSeconds", (v) => `${(1000 * v).toFixed(0)} ms`, true],
  ["load", "loadSeconds", (v) => `${v.toFixed(2)} s`, true],
  ["engine, brotli", "engineBytes", (v) => `${(v / 1000).toFixed(0)} kB`, true],
  ["peak memory of the page's process", "peakBytes", (v) => `${(v / MIB).toFixed(0)} MiB`, true],
  ["wasm heap", "heapBytes", (v) => `${(v / MIB).toFixed(0)} MiB`, true],
  ["page blocked, decode", "decodeBlockedMs", (v) => `${v.toFixed(1)} ms`, true],
  ["page blocked, prefill", "prefillBlockedMs", (v) => `${v.toFixed(1)} ms`, true],
];

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Median, and least to most; undefined where nothing was measured. */
function summary(runs, key) {
  const values = runs.map((run) => run[key]).filter((value) => typeof value === "number");
  return values.length === 0 ? undefined
    : { median: median(values), least: Math.min(...values), most: Math.max(...values) };
}

const shown = (s, show) =>
  s ? `${show(s.median)} (${show(s.least).split(" ")[0]} to ${show(s.most).split(" ")[0]})` : "";

/** The rows of one model and number of threads; others: the engines beside wick. */
function rows(title, runs, others) {
  const of = (engine) => runs.filter((run) => run.engine === engine);
  return MEASURES.flatMap(([name, key, show, isLessBetter]) => {
    const ours = summary(of("wick"), key);
    const theirs = others.map((engine) => summary(of(engine), key));
    if (!ours && theirs.every((one) => !one)) return [];
    const ratio = (their) => their && ours ? (isLessBetter ? their.median / ours.median
      : ours.median / their.median).toFixed(2) : "";
    const cells = [title, name, ...theirs.map((one) => shown(one, show)), shown(ours, show),
                   ...theirs.map(ratio)];
    return [`| ${cells.join(" | ")} |`];
  });
}

function aboutGpu({ perToken, device, tokens }) {
  const { reads, bytesRead, submits, dispatches, fallbacks } = perToken;
  const per = (value) => value.toFixed(1);
  return `On WebGPU (${device.name}), for each of ${tokens} tokens: ${per(reads)} reads of `
    + `together ${per(bytesRead)} bytes, ${per(submits)} submits, ${per(dispatches)} dispatches, `
    + `${per(fallbacks)} operations fallen back to the CPU.`;
}

const titleOf = ({ model, backend, threads }) => `${model}, ${backend === "webgpu" ? "WebGPU"
  : `${threads} thread${threads === 1 ? "" : "s"}`}`;

/** A report as Markdown. */
export function markdown({ about, runs }) {
  const { others } = about;
  const groups = new Map();
  for (const run of runs) groups.set(titleOf(run), [...(groups.get(titleOf(run)) ?? []), run]);
  const gpu = runs.find((run) => run.backend === "webgpu");
  const modules = [...new Set(runs.filter((run) => run.engine === "wick" && run.backend === "cpu")
    .map((run) => `${run.module} (${run.device.isa}) at ${run.device.threads}`))];
  const head = ["", "", ...others, "wick", ...others.map((name) => `better than ${name} by`)];
  return [
    `${about.processor}, ${about.cores} cores, ${(about.memoryBytes / 2 ** 30).toFixed(0)} GiB; `
      + `${about.browser}; ${about.date}, load ${about.loadBefore} before the start; `
      + `wick ${about.wick}${modules.length ? `, module: ${modules.join(", ")}` : ""}. Medians of `
      + `${about.rounds} alternating rounds, least to most.`,
    "",
    `| ${head.join(" | ")} |`,
    `|${head.map((_, i) => i < 2 ? "---|" : "---:|").join("")}`,
    ...[...groups].flatMap(([title, group]) => rows(title, group, others)),
    ...(gpu ? ["", aboutGpu(gpu)] : []),
    "",
  ].join("\n");
}
