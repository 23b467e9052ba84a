"""openvino_peer.py — OpenVINO (the PyPI package openvino) as a peer, one model a process. It prints a line of JSON.

  openvino_peer.py run MODEL --inputs IN.npz --outputs OUT.npz
  openvino_peer.py bench MODEL --inputs IN.npz [--threads N] [--seconds S]

Inputs have the sizes of the arrays. It computes in f32, where it would take bf16 on processors that have it.
"""

import argparse
import json
import sys

import numpy
import openvino
from peer import time_runs


def load(options, inputs):
    """A request that has its inputs, and the model."""
    core = openvino.Core()
    model = core.read_model(options.model)
    if any(port.partial_shape.is_dynamic for port in model.inputs):
        model.reshape({port: list(inputs[port.any_name].shape) for port in model.inputs})
    compiled = core.compile_model(model, "CPU", {
        "INFERENCE_NUM_THREADS": options.threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32",
    })
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        request.set_tensor(port, openvino.Tensor(inputs[port.any_name]))
    return request, compiled


def run(options):
    request, compiled = load(options, dict(numpy.load(options.inputs)))
    request.infer()
    numpy.savez(options.outputs, **{port.any_name: request.get_tensor(port).data for port in compiled.outputs})
    return {"outputs": [port.any_name for port in compiled.outputs]}


def bench(options):
    inputs = dict(numpy.load(options.inputs))
    return time_runs(lambda: load(options, inputs)[0].infer, options.seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["run", "bench"])
    parser.add_argument("model")
    parser.add_argument("--inputs", required=True)
    parser.add_argument("--outputs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    try:
        print(json.dumps({"run": run, "bench": bench}[options.mode](options)))
    except Exception as error:  # of the engine's own types, too
        sys.exit(f"error: {' '.join(str(error).split())}")


if __name__ == "__main__":
    main()
