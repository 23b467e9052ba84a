// ort.mjs — ONNX Runtime (the npm package onnxruntime-node) as a peer, one model a process. It prints a line of JSON.
//
//   node bench/ort.mjs run MODEL --inputs IN.npz --outputs OUT.npz [--dims JSON] [--shapes JSON] [--values JSON] [--below JSON]
//                                [--level LEVEL]
//   node bench/ort.mjs bench MODEL --inputs IN.npz [--threads N] [--seconds S]
//
// run makes up inputs and runs the model once on them. Floats are sin(0.37 i) + 0.1, integers 7919 i mod 1000, booleans true,
// as those of tenon run are, unless --values {"input": number} says what all elements of an input are. tenon run knows the tables
// that integers are looked up in: where one is smaller, --below {"input": size} says so. A symbolic dimension is 1, unless
// --dims {"symbol": size} or --shapes {"input": sizes} says otherwise.
//
// onnxruntime-node is looked for from the folder this is run in.
import { createRequire } from "node:module";
import { arrayOf, readArrays, writeArrays } from "./npz.mjs";

const ort = createRequire(process.cwd() + "/")("onnxruntime-node");
const [mode, model, ...words] = process.argv.slice(2);
const options = { threads: "2", seconds: "2", level: "all", dims: "{}", shapes: "{}", values: "{}", below: "{}" };
while (words.length > 0) options[words.shift().slice(2)] = words.shift();
const dims = JSON.parse(options.dims), shapes = JSON.parse(options.shapes), values = JSON.parse(options.values);
const below = JSON.parse(options.below);

function elementAt(name, type, i) {
  if (type === "bool") return 1;
  return type.startsWith("float") ? Math.sin(0.37 * i) + 0.1 : (7919 * i) % (below[name] ?? 1000);
}

function makeUp({ name, type, shape }) {
  const sizes = shapes[name] ?? shape.map((size) => (typeof size === "number" ? size : dims[size] ?? 1));
  const data = arrayOf(type, sizes.reduce((count, size) => count * size, 1));
  const isBig = type === "int64" || type === "uint64";
  for (let i = 0; i < data.length; i++) {
    const element = values[name] ?? elementAt(name, type, i);
    data[i] = isBig ? BigInt(element) : element;
  }
  return { type, dims: sizes, data };
}

const start = performance.now();
const session = await ort.InferenceSession.create(model, {
  intraOpNumThreads: +options.threads, interOpNumThreads: 1, logSeverityLevel: 4, graphOptimizationLevel: options.level });
const loaded = performance.now() - start;
if (mode === "run")
  writeArrays(options.inputs, Object.fromEntries(session.inputMetadata.map((input) => [input.name, makeUp(input)])));
const inputs = Object.fromEntries(Object.entries(readArrays(options.inputs)).map(
  ([name, { type, dims: sizes, data }]) => [name, new ort.Tensor(type, data, sizes)]));

async function timeRun() {
  const begin = performance.now();
  await session.run(inputs);
  return performance.now() - begin;
}

if (mode === "run") {
  const outputs = await session.run(inputs);
  writeArrays(options.outputs, Object.fromEntries(session.outputNames.map(
    (name) => [name, { type: outputs[name].type, dims: outputs[name].dims, data: outputs[name].data }])));
  console.log(JSON.stringify({ outputs: session.outputNames }));
} else {
  const milliseconds = 1000 * +options.seconds, times = [];
  for (let spent = 0, first = true; first || spent < milliseconds / 10; first = false) spent += await timeRun();
  for (let spent = 0; times.length < 5 || spent < milliseconds; spent += times.at(-1)) times.push(await timeRun());
  times.sort((a, b) => a - b);
  console.log(JSON.stringify({
    median_ms: times[times.length >> 1], p95_ms: times[Math.ceil(0.95 * times.length) - 1], min_ms: times[0], load_ms: loaded,
    runs: times.length, peak_rss_mib: process.resourceUsage().maxRSS / 1024 }));
}
