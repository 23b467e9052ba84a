"""opening.py — how long it takes until a model has run once: a saved program that tenon-run opens, and a session of ONNX Runtime.

  opening.py [MODEL...] [--tenon FILE] [--runner FILE] [--threads N] [--rounds R] [--dim NAME=N]... [--into DIR] [--zoo SCRIPT] [--json OUT]

Models are those of bench/peers, by SET, SET/NAME or NAME, or files and folders. Each is saved once by tenon compile. Then both take
turns, each time in a process of its own whose files are in memory: what is measured is opening the program, or making the session,
and the first run. Of the rounds, the fastest counts, as what else the machine does can only add. What processes take to start is left out: less
than a millisecond of tenon-run, but of Python that imports onnxruntime much more.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from peers_models import list_models

BENCH = Path(__file__).resolve().parent
BUILD = BENCH.parent / "build"
MILLISECONDS = {"ns": 1e-6, "µs": 1e-3, "ms": 1, "s": 1e3}


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it failed"])[-1])
    return done.stdout


def peer(mode, model, inputs, *words):
    return json.loads(run(sys.executable, BENCH / "ort.py", mode, model.path, "--inputs", inputs, *words))


def open_program(options, program, inputs):
    told = run(options.runner, program, "--inputs", inputs, "--threads", options.threads, "--runs", 1)
    numbers = re.search(r"^open ([\d.]+) (\S+), first run ([\d.]+) (\S+)$", told, re.MULTILINE)
    return {"load_ms": float(numbers[1]) * MILLISECONDS[numbers[2]], "first_ms": float(numbers[3]) * MILLISECONDS[numbers[4]]}


def measure(model, options, folder):
    model.path = model.find()
    inputs, program = folder / "inputs.npz", folder / "program.tnp"
    peer("inputs", model, inputs, *(word for key in ("dims", "shapes", "values", "below") for word in (f"--{key}", json.dumps(getattr(model, key)))))
    dims = [word for name, size in model.dims.items() for word in ("--dim", f"{name}={size}")]
    run(options.tenon, "compile", model.path, "-o", program, "--threads", options.threads, *dims)
    rounds = [(open_program(options, program, inputs), peer("open", model, inputs, "--threads", options.threads)) for _ in range(options.rounds)]
    fastest = [min(each, key=lambda times: times["load_ms"] + times["first_ms"]) for each in zip(*rounds)]
    return {"mib": program.stat().st_size / 2 ** 20, "tenon": fastest[0], "ort": fastest[1],
            "ratio": sum(fastest[1].values()) / sum(fastest[0].values())}


def parse_dim(text):
    name, _, size = text.rpartition("=")
    return name, int(size)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--tenon", default=BUILD / "tenon")
    parser.add_argument("--runner", default=BUILD / "tenon-run")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--dim", action="append", type=parse_dim, default=[])
    parser.add_argument("--into", type=Path, default=BUILD / "peers", help="where the models of bench/peers are kept")
    parser.add_argument("--zoo", type=Path, metavar="SCRIPT", help="makes the models whose .onnx files stand beside it")
    parser.add_argument("--json")
    options = parser.parse_args()
    print(f"{'':32} {'program':>9}   {'open':>7} {'first run':>9}   {'session':>7} {'first run':>9}")
    results = []
    for model in list_models(options.into, options.models, options.zoo, dict(options.dim)):
        with tempfile.TemporaryDirectory(prefix="opening-") as folder:
            try:
                found = measure(model, options, Path(folder))
            except (RuntimeError, OSError) as error:
                print(f"{model.name:32} {' '.join(str(error).split())[:200]}", flush=True)
                continue
        results.append({"model": model.name, **found})
        print(f"{model.name:32} {found['mib']:5.1f} MiB   {found['tenon']['load_ms']:7.2f} {found['tenon']['first_ms']:9.2f}   "
              f"{found['ort']['load_ms']:7.1f} {found['ort']['first_ms']:9.2f} ms  {found['ratio']:6.1f}x", flush=True)
    if results:
        ratios = [result["ratio"] for result in results]
        print(f"median {statistics.median(ratios):.1f}x of {len(ratios)}, least {min(ratios):.1f}x")
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))


main()
