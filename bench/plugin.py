"""plugin.py — Tenon's plug-in for ONNX Runtime beside ONNX Runtime's own CPU provider, in one process.

  plugin.py cases DIR... [--library FILE] [--json OUT]
  plugin.py models MODEL... [--library FILE] [--threads N] [--rounds R] [--seconds S] [--dim NAME=N]... [--json OUT]
  plugin.py call [--library FILE] [--seconds S]

cases runs cases of the ONNX backend test suite, every folder below DIR that holds a model.onnx, with the plug-in alone: where it
leaves a graph to others, there is no session. models
measures each model with both, in turn, one session at a time; inputs are those of ort.py. call measures a model of one
addition of 4 numbers, of which the call is nearly all: as a session, and as the same session of the CPU provider.
"""

import argparse
import collections
import json
import math
import statistics
import time
from pathlib import Path

import numpy
import onnx
import onnx.numpy_helper
import onnxruntime
from onnx import helper

import ort

RELATIVE, ABSOLUTE = 1e-3, 1e-7  # as onnx.backend.test has them
LIBRARY = Path(__file__).resolve().parent.parent / "build/libtenon_ep.so"


def plugin_options(threads):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    devices = [each for each in onnxruntime.get_ep_devices() if each.ep_name == "TenonExecutionProvider"]
    options.add_provider_for_devices(devices, {"threads": str(threads)})
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return options


# --- cases ---

def read_tensors(folder, stem):
    tensors = []
    while (file := folder / f"{stem}_{len(tensors)}.pb").exists():
        tensor = onnx.TensorProto()
        tensor.ParseFromString(file.read_bytes())
        tensors.append(onnx.numpy_helper.to_array(tensor))
    return tensors


def is_loaded_without(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        return True
    except Exception:
        return False


def run_case(folder):
    """What became of it: pass, wrong, error, left (to other providers), or refused (by ONNX Runtime, whoever runs it)."""
    path = folder / "model.onnx"
    try:
        session = onnxruntime.InferenceSession(str(path), plugin_options(1), enable_fallback=False)
    except Exception as error:
        left = "disable_cpu_ep_fallback" in str(error) or "CPU EP" in str(error)
        return ("left" if left else "error") if is_loaded_without(path) else "refused", str(error)
    for data in sorted(folder.glob("test_data_set_*")):
        try:
            arrays = read_tensors(data, "input")
            expected = read_tensors(data, "output")
            outputs = session.run(None, dict(zip([port.name for port in session.get_inputs()], arrays)))
        except Exception as error:
            return "error", str(error)
        for output, wanted in zip(outputs, expected):
            if output.dtype == object or wanted.dtype == object:
                is_same = output.tolist() == wanted.tolist()
            elif output.shape != wanted.shape or output.dtype != wanted.dtype:
                return "wrong", f"{output.dtype}{output.shape} instead of {wanted.dtype}{wanted.shape}"
            else:
                is_same = numpy.allclose(output.astype("f8") if output.dtype.kind not in "c" else output,
                                         wanted.astype("f8") if wanted.dtype.kind not in "c" else wanted,
                                         RELATIVE, ABSOLUTE, equal_nan=True)
            if not is_same:
                return "wrong", "other numbers"
    return "pass", ""


def run_cases(options):
    results = []
    for model in sorted(file for folder in options.paths for file in folder.rglob("model.onnx")):
        status, detail = run_case(model.parent)
        results.append({"name": model.parent.name, "status": status, "detail": detail})
        if status != "pass":
            print(f"{status} {model.parent.name}: {' '.join(detail.split())[:300]}", flush=True)
    print(dict(collections.Counter(result["status"] for result in results)))
    return results


# --- models ---

def load(path, provider, threads):
    begin = time.perf_counter()
    if provider == "plugin":
        session = onnxruntime.InferenceSession(str(path), plugin_options(threads), enable_fallback=False)
    else:
        session = ort.load(str(path), threads)
    return session, 1e3 * (time.perf_counter() - begin)


def measure(session, inputs, seconds):
    for _ in range(3):
        session.run(None, inputs)
    times, start = [], time.perf_counter()
    while len(times) < 5 or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        session.run(None, inputs)
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times)


def measure_model(path, options):
    medians, loads, outputs = collections.defaultdict(list), {}, {}
    for _ in range(options.rounds):
        for provider in ("cpu", "plugin"):
            session, loads[provider] = load(path, provider, options.threads)
            inputs = {port.name: ort.make_up(port, options) for port in session.get_inputs()}
            medians[provider].append(measure(session, inputs, options.seconds))
            outputs[provider] = session.run(None, inputs)
    worst = max((float(abs(a.astype("f8") - b.astype("f8")).max() / max(abs(b.astype("f8")).max(), 1e-30))
                 for a, b in zip(outputs["plugin"], outputs["cpu"]) if a.size), default=0.0)
    cpu, plugin = (statistics.median(medians[provider]) for provider in ("cpu", "plugin"))
    return {"cpu_ms": cpu, "plugin_ms": plugin, "speed_up": cpu / plugin, "cpu_load_ms": loads["cpu"],
            "plugin_load_ms": loads["plugin"], "difference": worst}


def run_models(options):
    results = []
    for path in options.paths:
        try:
            result = measure_model(path, options)
            print(f"{path.name:40} cpu {result['cpu_ms']:9.3f} ms  plug-in {result['plugin_ms']:9.3f} ms  {result['speed_up']:5.2f}x"
                  f"  load {result['cpu_load_ms']:.0f} and {result['plugin_load_ms']:.0f} ms  difference {result['difference']:.1e}", flush=True)
        except Exception as error:
            result = {"error": str(error)}
            print(f"{path.name:40} {' '.join(str(error).split())[:300]}", flush=True)
        results.append({"model": path.name, **result})
    ratios = [result["speed_up"] for result in results if "speed_up" in result]
    if ratios:
        print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.3f}x of {len(ratios)}, least {min(ratios):.2f}x")
    return results


# --- calls ---

def measure_calls(options):
    tensor = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in "xyz"]
    model = helper.make_model(helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"])], "call", tensor[:2], tensor[2:]),
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    x = numpy.ones(4, "f")
    results = {}
    sessions = {"plugin": onnxruntime.InferenceSession(model, plugin_options(1)),
                "cpu": onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])}
    rounds = {provider: [] for provider in sessions}
    for _ in range(options.rounds):
        for provider, session in sessions.items():
            rounds[provider].append(1e3 * measure(session, {"x": x, "y": x}, options.seconds))
    for provider, medians in rounds.items():
        results[provider] = statistics.median(medians)
        print(f"{provider}: {results[provider]:.2f} µs")
    return results


def parse_dim(text):
    name, _, size = text.rpartition("=")
    return name, int(size)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["cases", "models", "call"])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--library", default=LIBRARY)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--dim", action="append", type=parse_dim, default=[])
    parser.add_argument("--json")
    options = parser.parse_args()
    options.dims, options.shapes, options.values, options.below = dict(options.dim), {}, {}, {}
    onnxruntime.register_execution_provider_library("tenon", str(options.library))
    results = {"cases": run_cases, "models": run_models, "call": measure_calls}[options.what](options)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))


main()
