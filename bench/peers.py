"""peers.py — what bench/peers does: whether Tenon and another engine, or two builds of Tenon, agree on a model, and how long both take.

Each measurement is a process of its own, and both take turns, so that what slows the machine down for a while slows both. A
ratio is one median over the other, each the median of the medians of all rounds.
"""

import argparse
import dataclasses
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

from peers_models import list_models
from peers_report import draw_plot, write_builds_table, write_peers_table

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
TOLERANCE = 1e-3
LONGEST = 900  # seconds, of one process


@dataclasses.dataclass
class Engine:
    """Another engine, under the name of the PyPI package whose version it has."""

    name: str
    short: str
    program: str
    levels: tuple[str, ...] = ()  # of its optimiser, each of which it may be compared by


ENGINES = {
    "onnxruntime": Engine("ONNX Runtime", "ORT", "ort.py", ("all", "basic", "disabled")),
    "openvino": Engine("OpenVINO", "OV", "openvino_peer.py"),
    "torch": Engine("torch.compile", "torch", "torch_peer.py"),
    "jax": Engine("XLA by JAX", "XLA", "jax_peer.py"),
}


def read_options():
    def numbers(text):
        return [int(word) for word in text.split(",")]

    def binding(text):
        name, size = text.split("=")
        return name, int(size)

    parser = argparse.ArgumentParser(prog="bench/peers", description="Times Tenon and another engine, or two builds of Tenon, in turn.")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="a set, SET/NAME, a name, or the path of a file or folder")
    parser.add_argument("--engine", choices=ENGINES, default="onnxruntime")
    parser.add_argument("--builds", metavar="OLD,NEW", help="two tenon programs to compare with each other")
    parser.add_argument("--into", type=Path, default=ROOT / "build/peers", help="where models are kept and results written")
    parser.add_argument("--zoo", type=Path, metavar="SCRIPT", help="makes the models whose .onnx files stand beside it")
    parser.add_argument("--dim", type=binding, action="append", default=[], metavar="NAME=N", help="of models given by path")
    parser.add_argument("--threads", type=numbers, default=[1, 2], metavar="N,N")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1)
    options = parser.parse_args()
    if min(*options.threads, options.rounds) < 1 or options.seconds < 0:
        parser.error("threads and rounds are at least 1, and seconds are not negative")
    options.into = options.into.resolve()
    return options


def show(text):
    """On a terminal, in the place of what was shown before."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def run(who, words):
    """What a program wrote to stdout. One that fails throws the line of stderr that says why. As a process counts the most
    memory from before it became this program, too, what needs much is done in others, and not here."""
    try:
        done = subprocess.run([str(word) for word in words], env={**os.environ, "TENON_CACHE": ""}, capture_output=True, text=True,
                              errors="replace", timeout=LONGEST)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{who}: takes too long") from None
    if done.returncode != 0:
        said = next((line for line in done.stderr.splitlines() if re.search("error|tenon:", line, re.IGNORECASE)), None)
        raise RuntimeError(f"{who}: {said or f'ended with status {done.returncode}'}")
    return done.stdout


def median(numbers):
    return sorted(numbers)[len(numbers) // 2]


class Scratch:
    """The files of the model that is being measured, and the programs that read and write them."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def file(self, name):
        return self.folder / f"{name}.npz"

    def peer(self, engine, mode, model, *words):
        return json.loads(run(engine.name, [sys.executable, BENCH / engine.program, mode, model.path, "--inputs", self.file("in"), *words]))

    def make_inputs(self, model):
        self.peer(ENGINES["onnxruntime"], "inputs", model, *(word for key in ("dims", "shapes", "values", "below")
                                    for word in (f"--{key}", json.dumps(getattr(model, key)))))

    def tenon(self, program, command, model, *words):
        dims = [word for name, size in model.dims.items() for word in ("--dim", f"{name}={size}")]
        run("Tenon", [program, command, model.path, "--inputs", self.file("in"), *dims, *words])

    def time_tenon(self, program, model, words):
        json_file = self.folder / "bench.json"
        self.tenon(program, "bench", model, *words, "--json", json_file)
        return json.loads(json_file.read_text())

    def difference(self, ours, theirs):
        return float(run("comparing", [sys.executable, BENCH / "difference.py", self.file(ours), self.file(theirs)]))


class Peers:
    """Tenon and another engine."""

    def __init__(self, options, scratch):
        self.options, self.scratch, self.program = options, scratch, ROOT / "build/tenon"
        self.engine = ENGINES[options.engine]
        self.name = "results" if options.engine == "onnxruntime" else options.engine

    def description(self):
        return {"peer": f"{self.engine.name} {metadata.version(self.options.engine)}", "short": self.engine.short}

    def compare(self, model):
        """How far the outputs differ, from those of the level of the other optimiser that is nearest. Where a model rounds
        what it computes to integers, a last bit can change all that follows, and its levels differ from each other: by `own`."""
        difference, own = math.inf, 0.0
        self.scratch.make_inputs(model)
        self.scratch.tenon(self.program, "run", model, "--outputs", self.scratch.file("ours"))
        for level in self.engine.levels or ("all",):
            words = ("--level", level) if self.engine.levels else ()
            self.scratch.peer(self.engine, "run", model, "--outputs", self.scratch.file(level), *words)
            difference = min(difference, self.scratch.difference("ours", level))
            own = max(own, self.scratch.difference("all", level))
            if difference <= TOLERANCE:
                return {"difference": difference}
        if difference > 2 * own:
            raise RuntimeError(f"the outputs differ by {difference:.1e}")
        return {"difference": difference, "own": own}

    def run_round(self, model, words):
        return {"tenon": self.scratch.time_tenon(self.program, model, words), "peer": self.scratch.peer(self.engine, "bench", model, *words)}

    def summarise(self, rounds):
        def of(engine, field):
            return median([each[engine][field] for each in rounds])

        def least(engine):
            return min(each[engine]["min_ms"] for each in rounds)

        return {"tenon_ms": of("tenon", "median_ms"), "peer_ms": of("peer", "median_ms"),
                "ratio": of("peer", "median_ms") / of("tenon", "median_ms"), "best_ratio": least("peer") / least("tenon"),
                "compile_ms": of("tenon", "compile_ms"), "load_ms": of("peer", "load_ms"),
                "tenon_mib": of("tenon", "peak_rss_mib"), "peer_mib": of("peer", "peak_rss_mib")}

    def write(self, results):
        table = write_peers_table(results)
        (self.options.into / f"{self.name}.txt").write_text(table)
        (self.options.into / f"{self.name}.svg").write_text(draw_plot(results))
        return table


class Builds:
    """Two builds of Tenon."""

    name = "builds"

    def __init__(self, options, scratch):
        self.options, self.scratch = options, scratch
        self.programs = dict(zip(("old", "new"), (Path(path).resolve() for path in options.builds.split(",")), strict=True))
        for program in self.programs.values():
            if not program.is_file():
                raise ValueError(f"there is no program {program}")

    def description(self):
        return {name: f"{program} ({run('Tenon', [program, '--version']).strip()})" for name, program in self.programs.items()}

    def compare(self, model):
        self.scratch.make_inputs(model)
        for name, program in self.programs.items():
            self.scratch.tenon(program, "run", model, "--outputs", self.scratch.file(name))
        difference = self.scratch.difference("new", "old")
        if difference > TOLERANCE:
            raise RuntimeError(f"the outputs differ by {difference:.1e}")
        return {"difference": difference}

    def run_round(self, model, words):
        return {name: self.scratch.time_tenon(program, model, words) for name, program in self.programs.items()}

    def summarise(self, rounds):
        summary = {}
        for field, key, ratio in (("median_ms", "ms", "ratio"), ("compile_ms", "compile_ms", "compile_ratio"),
                                  ("cached_compile_ms", "cached_ms", "cached_ratio")):
            old, new = (median([each[name][field] for each in rounds]) for name in ("old", "new"))
            summary.update({f"old_{key}": old, f"new_{key}": new, ratio: old / new})
        old, new = (min(each[name]["min_ms"] for each in rounds) for name in ("old", "new"))
        return {**summary, "best_ratio": old / new}

    def write(self, results):
        table = write_builds_table(results)
        (self.options.into / "builds.txt").write_text(table)
        return table


def examine(comparison, model, options):
    """The row of a model, which has a `problem` where it could not be measured."""
    row = {"model": model.name, "times": []}
    try:
        show(f"{model.name}: looking for it")
        model.path = model.find()
        show(f"{model.name}: comparing")
        row.update(comparison.compare(model))
        for threads in options.threads:
            words, rounds = ["--threads", threads, "--seconds", options.seconds], []
            for i in range(options.rounds):
                show(f"{model.name}, with {threads} threads: round {i + 1} of {options.rounds}")
                rounds.append(comparison.run_round(model, words))
            row["times"].append({"threads": threads, **comparison.summarise(rounds), "rounds": rounds})
    except (RuntimeError, OSError) as error:
        row["problem"] = " ".join(str(error).split())[:300]
    return row


def machine():
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return f"{names[0] if names else os.uname().machine}, {os.cpu_count()} cores"


def measure_all(options, folder):
    comparison = (Builds if options.builds else Peers)(options, Scratch(folder))
    models = list_models(options.into, options.models, options.zoo, dict(options.dim))
    options.into.mkdir(parents=True, exist_ok=True)
    results = {"machine": machine(), **comparison.description(), "rounds": options.rounds, "seconds": options.seconds, "rows": []}
    for model in models:
        results["rows"].append(examine(comparison, model, options))
        # After each model, so that what there is stays if this is ended early.
        (options.into / f"{comparison.name}.json").write_text(json.dumps(results, indent=1) + "\n")
    show("")
    print(comparison.write(results), end="")


def main():
    options = read_options()
    with tempfile.TemporaryDirectory(prefix="peers-") as folder:
        try:
            measure_all(options, folder)
        except (RuntimeError, OSError, ValueError) as error:
            sys.exit(f"bench/peers: {error}")


if __name__ == "__main__":
    main()
