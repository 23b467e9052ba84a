// peers.mjs — what bench/peers does: whether Tenon and ONNX Runtime agree on a model, and then how long both take.
//
// Each measurement is a process of its own, and both engines take turns, so that what slows the machine down for a while slows
// both. A ratio is ONNX Runtime's median over Tenon's, each the median of the medians of all rounds.
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { findPeer, listModels } from "./peers_models.mjs";
import { drawPlot, writeTable } from "./peers_report.mjs";

const bench = dirname(fileURLToPath(import.meta.url)), root = dirname(bench), tenon = join(root, "build/tenon");
const TOLERANCE = 1e-3, LONGEST = 900_000; // in milliseconds, of one process

function readOptions(words) {
  const usage = new Error("usage: bench/peers [--into DIR] [--models NAME,NAME...] [--threads 1,2] [--rounds 3] [--seconds 1]");
  const given = { into: join(root, "build/peers"), models: "", threads: "1,2", rounds: "3", seconds: "1" };
  for (let i = 0; i < words.length; i += 2) {
    const name = words[i].replace(/^--/, "");
    if (given[name] === undefined || words[i + 1] === undefined) throw usage;
    given[name] = words[i + 1];
  }
  const list = (text) => text.split(",").filter((word) => word !== "");
  const options = { into: resolve(given.into), models: list(given.models), threads: list(given.threads).map(Number),
    rounds: +given.rounds, seconds: +given.seconds };
  if (![...options.threads, options.rounds].every((count) => Number.isInteger(count) && count > 0) || !(options.seconds >= 0))
    throw usage;
  return options;
}

// On a terminal, in the place of what was shown before.
function show(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

const runFile = promisify(execFile);
// What a program wrote to stdout. One that fails throws the line of stderr that says why. As a process counts the most memory
// from before it became this program, too, what needs much is done in others, and not here.
async function run(who, program, words, folder) {
  try {
    const environment = { ...process.env, TENON_CACHE: "" };
    return (await runFile(program, words, { cwd: folder, env: environment, timeout: LONGEST, maxBuffer: 1 << 26 })).stdout;
  } catch (error) {
    const said = error.stderr?.split("\n").find((line) => /error|tenon:/i.test(line))?.trim();
    throw new Error(`${who}: ${error.killed ? "takes too long" : said ?? `ended by ${error.signal ?? error.code}`}`);
  }
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];

class Comparison {
  constructor(options) {
    this.options = options;
    this.peer = findPeer(options.into);
    this.scratch = mkdtempSync(join(tmpdir(), "peers-"));
  }

  ort(mode, path, words) {
    const script = join(bench, "ort.mjs"), inputs = ["--inputs", join(this.scratch, "in.npz")];
    return run("ONNX Runtime", "node", [script, mode, path, ...inputs, ...words], this.peer);
  }

  tenon(command, model, words) {
    const dims = Object.entries(model.dims ?? {}).flatMap(([name, size]) => ["--dim", `${name}=${size}`]);
    return run("Tenon", tenon, [command, model.path, "--inputs", join(this.scratch, "in.npz"), ...dims, ...words], this.scratch);
  }

  // How far the outputs differ, from those of the level of ONNX Runtime's optimiser that is nearest. Where a model rounds what it
  // computes to integers, a last bit can change all that follows, and its levels differ from each other: by `own`.
  async compare(model) {
    const made = ["dims", "shapes", "values"].flatMap((key) => [`--${key}`, JSON.stringify(model[key] ?? {})]);
    const file = (name) => join(this.scratch, `${name}.npz`);
    const found = { difference: Infinity, own: 0 };
    const differ = join(bench, "difference.mjs");
    const difference = async (a, b) => Number(await run("comparing", "node", [differ, file(a), file(b)], this.scratch));
    for (const level of ["all", "basic", "disabled"]) {
      await this.ort("run", model.path, ["--outputs", file(level), "--level", level, ...made]);
      if (level === "all") await this.tenon("run", model, ["--outputs", file("ours")]);
      found.difference = Math.min(found.difference, await difference("ours", level));
      found.own = Math.max(found.own, await difference("all", level));
      if (found.difference <= TOLERANCE) break;
    }
    return found;
  }

  async measure(model, threads) {
    const words = ["--threads", String(threads), "--seconds", String(this.options.seconds)], rounds = [];
    for (let i = 1; i <= this.options.rounds; i++) {
      show(`${model.name}, with ${threads} threads: round ${i} of ${this.options.rounds}`);
      const json = join(this.scratch, "bench.json");
      await this.tenon("bench", model, [...words, "--json", json]);
      rounds.push({ tenon: JSON.parse(readFileSync(json)), ort: JSON.parse(await this.ort("bench", model.path, words)) });
    }
    const of = (engine, field) => median(rounds.map((round) => round[engine][field]));
    const least = (engine) => Math.min(...rounds.map((round) => round[engine].min_ms));
    return { threads, tenon_ms: of("tenon", "median_ms"), ort_ms: of("ort", "median_ms"),
      ratio: of("ort", "median_ms") / of("tenon", "median_ms"), best_ratio: least("ort") / least("tenon"),
      compile_ms: of("tenon", "compile_ms"), load_ms: of("ort", "load_ms"),
      tenon_mib: of("tenon", "peak_rss_mib"), ort_mib: of("ort", "peak_rss_mib"), rounds };
  }

  // { model, difference, times }, and `own` where that is why it may be larger; or { model, problem }.
  async examine(model) {
    const row = { model: model.name, times: [] };
    try {
      show(`${model.name}: looking for it`);
      model.path = model.find();
      show(`${model.name}: comparing`);
      const found = await this.compare(model);
      row.difference = found.difference;
      if (found.difference > TOLERANCE) {
        if (found.difference > 2 * found.own) throw new Error(`the outputs differ by ${found.difference.toExponential(1)}`);
        row.own = found.own;
      }
      for (const threads of this.options.threads) row.times.push(await this.measure(model, threads));
    } catch (error) {
      row.problem = String(error.message).replace(/\s+/g, " ").slice(0, 300);
    }
    return row;
  }

  end() {
    show("");
    rmSync(this.scratch, { recursive: true });
  }
}

async function main() {
  const options = readOptions(process.argv.slice(2));
  const models = listModels(options.into, options.models);
  mkdirSync(options.into, { recursive: true });
  const comparison = new Comparison(options);
  const version = JSON.parse(readFileSync(join(comparison.peer, "node_modules/onnxruntime-node/package.json"))).version;
  const results = { machine: `${cpus()[0].model}, ${cpus().length} cores`, peer: `ONNX Runtime ${version}`,
    rounds: options.rounds, seconds: options.seconds, rows: [] };
  try {
    for (const model of models) {
      results.rows.push(await comparison.examine(model));
      // After each model, so that what there is stays if this is ended early.
      writeFileSync(join(options.into, "results.json"), JSON.stringify(results, null, 1) + "\n");
    }
  } finally {
    comparison.end();
  }
  const table = writeTable(results);
  writeFileSync(join(options.into, "results.txt"), table);
  writeFileSync(join(options.into, "results.svg"), drawPlot(results));
  process.stdout.write(table);
}

main().catch((error) => {
  console.error(`bench/peers: ${error.message}`);
  process.exitCode = 2;
});
