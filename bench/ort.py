"""ort.py — ONNX Runtime (the PyPI package onnxruntime) as a peer, one model a process. It prints a line of JSON.

  ort.py inputs MODEL --inputs IN.npz [--dims JSON] [--shapes JSON] [--values JSON] [--below JSON]
  ort.py run MODEL --inputs IN.npz --outputs OUT.npz [--level LEVEL]
  ort.py bench MODEL --inputs IN.npz [--threads N] [--seconds S]
  ort.py open MODEL --inputs IN.npz [--threads N]

open measures how long it takes to make a session, and its first run.

inputs makes up inputs: floats are sin(0.37 i) + 0.1, integers 7919 i mod 1000, booleans true, as those of tenon run are,
unless --values {"input": number} says what all elements of an input are. tenon run knows the tables that integers are looked
up in: where one is smaller, --below {"input": size} says so. A symbolic dimension is 1, unless --dims {"symbol": size} or
--shapes {"input": sizes} says otherwise.
"""

import argparse
import json
import math
import sys
import time

import numpy
import onnxruntime
from peer import time_runs

LEVELS = {
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "extended": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "basic": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "disabled": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
DTYPES = {
    "float": numpy.float32, "double": numpy.float64, "float16": numpy.float16, "bool": numpy.bool_,
    "int64": numpy.int64, "int32": numpy.int32, "int16": numpy.int16, "int8": numpy.int8,
    "uint64": numpy.uint64, "uint32": numpy.uint32, "uint16": numpy.uint16, "uint8": numpy.uint8,
}


def load(model, threads=2, level="all"):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.graph_optimization_level, options.log_severity_level = LEVELS[level], 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def dtype_of(port):
    name = port.type.removeprefix("tensor(").removesuffix(")")
    if name not in DTYPES:
        raise ValueError(f"input {port.name} has the type {port.type}")
    return DTYPES[name]


def make_up(port, options):
    """An array for an input of a session, by the rule above."""
    dtype = dtype_of(port)
    sizes = options.shapes.get(port.name) or [size if isinstance(size, int) else options.dims.get(size, 1) for size in port.shape]
    indices = numpy.arange(math.prod(sizes))
    if port.name in options.values:
        elements = numpy.full(indices.shape, options.values[port.name])
    elif dtype == numpy.bool_:
        elements = numpy.ones(indices.shape)
    elif numpy.issubdtype(dtype, numpy.floating):
        elements = numpy.sin(0.37 * indices) + 0.1
    else:
        elements = 7919 * indices % options.below.get(port.name, 1000)
    return elements.astype(dtype).reshape(sizes)


def write_inputs(options):
    session = load(options.model, level="disabled")
    arrays = {port.name: make_up(port, options) for port in session.get_inputs()}
    numpy.savez(options.inputs, **arrays)
    return {"inputs": list(arrays)}


def run(options):
    session = load(options.model, options.threads, options.level)
    names = [port.name for port in session.get_outputs()]
    outputs = session.run(None, dict(numpy.load(options.inputs)))
    # A sequence of tensors has an array for each.
    arrays = {}
    for name, output in zip(names, outputs):
        arrays.update({f"{name}.{i}": each for i, each in enumerate(output)} if isinstance(output, list) else {name: output})
    numpy.savez(options.outputs, **arrays)
    return {"outputs": names}


def bench(options):
    inputs = dict(numpy.load(options.inputs))

    def ready():
        session = load(options.model, options.threads, options.level)
        return lambda: session.run(None, inputs)

    return time_runs(ready, options.seconds)


def time_opening(options):
    inputs = dict(numpy.load(options.inputs))
    begin = time.perf_counter()
    session = load(options.model, options.threads, options.level)
    loaded = time.perf_counter()
    session.run(None, inputs)
    return {"load_ms": 1e3 * (loaded - begin), "first_ms": 1e3 * (time.perf_counter() - loaded)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["inputs", "run", "bench", "open"])
    parser.add_argument("model")
    parser.add_argument("--inputs", required=True)
    parser.add_argument("--outputs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--level", choices=LEVELS, default="all")
    for name in ("dims", "shapes", "values", "below"):
        parser.add_argument(f"--{name}", type=json.loads, default={})
    options = parser.parse_args()
    try:
        print(json.dumps({"inputs": write_inputs, "run": run, "bench": bench, "open": time_opening}[options.mode](options)))
    except Exception as error:  # of the engine's own types, too
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
