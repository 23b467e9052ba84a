"""plugin.py — Tenon's plug-in for ONNX Runtime beside ONNX Runtime's own CPU provider, in one process.

  plugin.py cases DIR... [--library FILE] [--json OUT]
  plugin.py models [MODEL...] [--library FILE] [--threads N] [--rounds R] [--seconds S] [--dim NAME=N]... [--into DIR] [--json OUT]
  plugin.py call [--library FILE] [--rounds R] [--seconds S] [--json OUT]

cases runs cases of the ONNX backend test suite, every folder below DIR that holds a model.onnx, with the plug-in alone: where it
leaves a graph to others, there is no session. models measures each model with both, in turn, a slice of time each; models are those
of bench/peers, by SET, SET/NAME or NAME, or files and folders. Times are of the median and the fastest run, and of the processor: what
all threads take for a run, waiting for each other included. call measures a model of one
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
from peers_models import list_models

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
    """The seconds that each run took, and those of the processor for all."""
    for _ in range(2):
        session.run(None, inputs)
    times, start, processor = [], time.perf_counter(), time.process_time()
    while len(times) < 3 or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        session.run(None, inputs)
        times.append(time.perf_counter() - begin)
    return times, time.process_time() - processor


def measure_in_turn(sessions, inputs, options):
    """Milliseconds of each session: of the median of the rounds' medians, of the fastest run, and of the processor in the median round."""
    rounds = {name: [] for name in sessions}
    for _ in range(options.rounds):
        for name, session in sessions.items():
            rounds[name].append(measure(session, inputs, options.seconds))
    return {name: {"median": 1e3 * statistics.median(statistics.median(times) for times, _ in each),
                   "least": 1e3 * min(min(times) for times, _ in each),
                   "processor": 1e3 * statistics.median(processor / len(times) for times, processor in each)} for name, each in rounds.items()}


def largest_difference(ours, theirs):
    return max((float(abs(a.astype("f8") - b.astype("f8")).max() / max(abs(b.astype("f8")).max(), 1e-30))
                for a, b in zip(ours, theirs) if a.size), default=0.0)


def measure_model(model, options):
    path, sessions, loads = model.find(), {}, {}
    for provider in ("cpu", "plugin"):
        sessions[provider], loads[provider] = load(path, provider, options.threads)
    inputs = {port.name: ort.make_up(port, model) for port in sessions["cpu"].get_inputs()}
    for _ in range(5):  # sizes that recur are compiled for meanwhile
        outputs = {name: session.run(None, inputs) for name, session in sessions.items()}
    return {"times": measure_in_turn(sessions, inputs, options), "loads": loads,
            "difference": largest_difference(outputs["plugin"], outputs["cpu"])}


def ratio(result, time):
    return result["times"]["cpu"][time] / result["times"]["plugin"][time]


def show_model(name, result):
    cpu, plugin = result["times"]["cpu"], result["times"]["plugin"]
    print(f"{name:32} {cpu['median']:9.3f} {plugin['median']:9.3f} ms {ratio(result, 'median'):5.2f}x  {ratio(result, 'least'):5.2f}x"
          f"  {ratio(result, 'processor'):5.2f}x  {result['loads']['cpu']:5.0f} {result['loads']['plugin']:6.0f} ms  {result['difference']:.0e}",
          flush=True)


def run_models(options):
    print(f"{'':32} {'CPU':>9} {'plug-in':>9}    median  fastest  processor  loading  difference")
    results = []
    for model in list_models(options.into, [str(path) for path in options.paths], options.zoo, dict(options.dim)):
        try:
            result = measure_model(model, options)
            show_model(model.name, result)
        except Exception as error:
            result = {"error": str(error)}
            print(f"{model.name:32} {' '.join(str(error).split())[:200]}", flush=True)
        results.append({"model": model.name, **result})
    measured = [result for result in results if "times" in result]
    for time_of in ("median", "least", "processor") if measured else ():
        ratios = [ratio(result, time_of) for result in measured]
        print(f"{time_of}: geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.3f}x of {len(ratios)}, "
              f"least {min(ratios):.2f}x")
    return results


# --- calls ---

def measure_calls(options):
    tensor = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in "xyz"]
    model = helper.make_model(helper.make_graph([helper.make_node("Add", ["x", "y"], ["z"])], "call", tensor[:2], tensor[2:]),
                              opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    sessions = {"plugin": onnxruntime.InferenceSession(model, plugin_options(1)),
                "cpu": onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])}
    results = measure_in_turn(sessions, dict.fromkeys("xy", numpy.ones(4, "f")), options)
    for provider, times in results.items():
        print(f"{provider}: " + ", ".join(f"{name} {1e3 * taken:.2f} µs" for name, taken in times.items()))
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
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--into", type=Path, default=LIBRARY.parent / "peers", help="where the models of bench/peers are kept")
    parser.add_argument("--zoo", type=Path, metavar="SCRIPT", help="makes the models whose .onnx files stand beside it")
    parser.add_argument("--dim", action="append", type=parse_dim, default=[])
    parser.add_argument("--json")
    options = parser.parse_args()
    onnxruntime.register_execution_provider_library("tenon", str(options.library))
    results = {"cases": run_cases, "models": run_models, "call": measure_calls}[options.what](options)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=1))


main()
