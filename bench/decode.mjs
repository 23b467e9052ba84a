// decode.mjs — what bench/decode.cpp does, with ONNX Runtime (the npm package onnxruntime-node), and whether both agree.
//
//   node bench/decode.mjs MODEL.onnx [--steps N] [--prompt N] [--threads N] [--outputs FILE]
//
// FILE is what bench_decode wrote with the same --steps and --prompt. Each step is compared by itself, from what Tenon
// remembered of the steps before: no element may differ from ONNX Runtime's by more than 1e-3 of the largest. A model
// that quantises what it computes can be compared only so far: a last bit that differs may round to the next integer, and
// ONNX Runtime differs from itself when it optimises more or less, or when last bits of what it is given change. So a step
// agrees when it does with one of its levels, or with such a run.
//
// onnxruntime-node is looked for from the folder this is run in: npm install --no-save onnxruntime-node
import { createRequire } from "node:module";
import { openSync, readSync } from "node:fs";

const ort = createRequire(process.cwd() + "/")("onnxruntime-node");
const options = { steps: "64", prompt: "8", threads: "2" };
let model;
for (let words = process.argv.slice(2); words.length > 0; )
  if (words[0].startsWith("--")) options[words.shift().slice(2)] = words.shift();
  else model = words.shift();
const steps = +options.steps, prompt = +options.prompt;

const load = (level) => ort.InferenceSession.create(model, {
  intraOpNumThreads: +options.threads, interOpNumThreads: 1, logSeverityLevel: 4, graphOptimizationLevel: level });
const session = await load("all");
const others = options.outputs ? await Promise.all(["extended", "basic", "disabled"].map(load)) : [];
const presents = session.outputNames.filter((name) => name.startsWith("present"));
const pasts = session.inputMetadata.filter((input) => input.name.startsWith("past"));

// The dimensions that are not fixed are the batch, which is 1, and last the tokens.
function emptyPast(input) {
  const sizes = input.shape.map((size) => (typeof size === "number" && size >= 0 ? size : 1));
  sizes[input.shape.findLastIndex((size) => typeof size !== "number" || size < 0)] = 0;
  return new ort.Tensor(input.type, [], sizes);
}

function feed(input, past, tokens) {
  if (input.name.includes("mask")) return new ort.Tensor("int64", new BigInt64Array(past + tokens).fill(1n), [1, past + tokens]);
  const element = input.name.includes("position") ? (k) => past + k : (k) => ((past + k) * 7919) % 1000;
  return new ort.Tensor("int64", BigInt64Array.from({ length: tokens }, (_, k) => BigInt(element(k))), [1, tokens]);
}

const file = options.outputs ? openSync(options.outputs) : undefined;
// The outputs that Tenon computed, which have the types and sizes of these.
function readOutputs(like) {
  const read = (tensor) => {
    const elements = new tensor.data.constructor(tensor.data.length);
    if (readSync(file, elements) !== elements.byteLength) throw new Error(`${options.outputs} ends too early`);
    return new ort.Tensor(tensor.type, elements, tensor.dims);
  };
  return Object.fromEntries(session.outputNames.map((name) => [name, read(like[name])]));
}

function difference(ours, theirs) {
  return Math.max(...session.outputNames.map((name) => {
    const a = ours[name].data, b = theirs[name].data;
    let worst = 0, largest = 0;
    for (let i = 0; i < a.length; i++) {
      largest = Math.max(largest, Math.abs(b[i]));
      worst = Math.max(worst, Number.isFinite(a[i]) ? Math.abs(a[i] - b[i]) : Infinity);
    }
    return worst === 0 ? 0 : worst / largest;
  }));
}

// The same but for the last bits of floats.
function nudge(inputs, seed) {
  const nudged = (tensor) => {
    if (tensor.type !== "float32") return tensor;
    const bits = new Int32Array(Float32Array.from(tensor.data).buffer);
    for (let i = 0; i < bits.length; i++) if (((i + 1) * 2654435761 * seed) & 0x10000) bits[i] ^= 1;
    return new ort.Tensor("float32", new Float32Array(bits.buffer), tensor.dims);
  };
  return Object.fromEntries(Object.entries(inputs).map(([name, tensor]) => [name, nudged(tensor)]));
}

const cache = Object.fromEntries(pasts.map((input) => [input.name, emptyPast(input)]));
const rest = session.inputMetadata.filter((input) => !input.name.startsWith("past"));
const times = [], differences = [];
let past = 0, unsure = 0, firstLevel = 0, anyLevel = 0;
for (let step = 0; step <= steps; step++) {
  const tokens = step === 0 ? prompt : 1;
  const inputs = { ...cache, ...Object.fromEntries(rest.map((input) => [input.name, feed(input, past, tokens)])) };
  const start = performance.now();
  let outputs = await session.run(inputs);
  times.push(performance.now() - start);
  if (file !== undefined) {
    const all = [outputs];
    for (const other of others) all.push(await other.run(inputs));
    outputs = readOutputs(all[0]);
    let least = Math.min(...all.map((theirs) => difference(outputs, theirs)));
    if (difference(outputs, all[0]) <= 1e-3) firstLevel++;
    if (least <= 1e-3) anyLevel++;
    for (let seed = 1; seed <= 8 && least > 1e-3; seed++)
      for (const other of [session, ...others]) least = Math.min(least, difference(outputs, await other.run(nudge(inputs, seed))));
    differences.push(least);
    if (all.some((theirs) => difference(theirs, all[0]) > 1e-3)) unsure++;
  }
  past += tokens;
  pasts.forEach((input, i) => (cache[input.name] = outputs[presents[i]]));
}

const [first, ...later] = times;
later.sort((a, b) => a - b);
console.log(`ONNX Runtime: ${prompt} tokens of prompt in ${first.toFixed(2)} ms; ${steps} steps: median ${later[steps >> 1].toFixed(2)} ms, ` +
  `p95 ${later[Math.floor(steps * 0.95)].toFixed(2)} ms, min ${later[0].toFixed(2)} ms`);
if (file !== undefined) {
  const far = differences.flatMap((worst, step) => (worst <= 1e-3 ? [] : [`${step} (${worst.toExponential(1)})`]));
  console.log(`${differences.length - far.length} of ${differences.length} runs agree, within ${Math.max(...differences.filter((worst) => worst <= 1e-3)).toExponential(1)}; ` +
    `${firstLevel} with all its optimisations, ${anyLevel} with some level of them, the others when last bits change; ` +
    `in ${unsure}, ONNX Runtime differs from itself` + (far.length > 0 ? `; these differ: ${far.join(", ")}` : ""));
  process.exitCode = far.length === 0 ? 0 : 1;
}
