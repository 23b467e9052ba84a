"""peers.py — bench/gpu/run peers: PyTorch and Tenon on the same workloads, and a table of both.

Results are kept by GPU, then by the versions of PyTorch or by the build of Tenon, then by workload.
"""

import argparse
import json
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from results import call, digest, read, write
from workloads import all_workloads, make_inputs, write_model

PEERS = ("eager", "compile", "reduce")
TOLERANCE = 1e-3
LONGEST = 180  # seconds, of one run of tenon


class Item(NamedTuple):
    """A workload, ready to be measured."""

    name: str
    prepare: Callable[[Path], tuple[Path, Path | None]]  # writes into a folder; the model, and arrays for its inputs
    make_call: Callable[[], Any]  # PyTorch's function; None where there is none
    bytes_moved: int = 0  # 0: not known
    flops: int = 0
    has_images: bool = False
    names: tuple[str, ...] = ()  # of the arrays that PyTorch's function takes; else those of the model's inputs


def find_torch(device: str) -> Any:
    """The peer, where it is installed and has a GPU."""
    try:
        import torch_peer
    except ImportError:
        return None
    return torch_peer if device.startswith("cuda") and torch_peer.torch.cuda.is_available() else None


def name_device(tenon: Path, device: str) -> str:
    wanted = "cuda:0" if device == "cuda" else device
    lines = call([tenon, "devices"], 60).stdout.splitlines()
    line = next((line for line in lines if line.startswith(f"{wanted}: ")), None)
    if not line:
        raise SystemExit(f"tenon devices lists no {wanted}")
    return re.split(r" \(sm_|: ", line.removeprefix(f"{wanted}: "))[0]


def list_items(models: list[Path], peer: Any, device: str) -> Iterator[Item]:
    for workload in all_workloads():
        def prepare(folder: Path, workload: Any = workload) -> tuple[Path, Path]:
            write_model(workload, folder / "model.onnx")
            numpy.savez(folder / "arrays.npz", **make_inputs(workload))
            return folder / "model.onnx", folder / "arrays.npz"
        yield Item(workload.name, prepare, lambda workload=workload: workload.call, workload.bytes_moved,
                   workload.flops, workload.has_images, tuple(workload.inputs))
    for path in (path for given in models for path in (sorted(given.glob("*.onnx")) if given.is_dir() else [given])):
        arrays = path.with_name(path.name.split(".")[0] + ".npz")
        yield Item(f"{path.parent.name}/{path.stem}", lambda _, path=path, arrays=arrays: (path, arrays if arrays.exists() else None),
                   lambda path=path: peer.find_module(path, device))


def load_inputs(item: Item, model: Path, arrays: Path | None, device: str) -> list[Any]:
    """On the device, in the order in which they are named, or that of the model's; random images where there are no arrays."""
    import onnx
    import torch

    if item.names:
        held = numpy.load(arrays)
        inputs = [torch.from_numpy(held[name]).to(device) for name in item.names]
        return [inputs[0].permute(0, 3, 1, 2), *inputs[1:]] if item.has_images else inputs
    graph = onnx.load(str(model), load_external_data=False).graph
    weights = {each.name for each in graph.initializer}
    ports = [each for each in graph.input if each.name not in weights]
    if arrays:
        held = numpy.load(arrays)
        return [torch.from_numpy(held[port.name if port.name in held else f"input_{i}"]).to(device) for i, port in enumerate(ports)]
    return [torch.randn([size.dim_value or 1 for size in port.type.tensor_type.shape.dim], device=device) for port in ports]


def measure_peers(item: Item, peer: Any, ways: list[str], device: str, model: Path, arrays: Path | None, found: dict[str, Any],
                  deadline: float) -> None:
    """Adds what is not found yet, until the deadline. Of workloads, PyTorch's output joins the arrays, for Tenon's to agree with."""
    try:
        function = item.make_call()
        if not function:
            found.update({way: {} for way in ways})
            return
        inputs = load_inputs(item, model, arrays, device)
        if item.bytes_moved:
            output = function(*inputs).cpu().numpy()
            if item.has_images:
                output = output.transpose(0, 2, 3, 1)
            numpy.savez(arrays, **dict(numpy.load(arrays)), y=output)
            if "copy" not in found:
                found["copy"] = peer.measure_copy(item.bytes_moved, device)
    except Exception as error:  # as when memory or a package is missing
        found.update({way: {"error": f"{type(error).__name__}: {error}".splitlines()[0]} for way in ways if way not in found})
    for way in ways:
        if way not in found and time.monotonic() < deadline:
            found[way] = peer.measure_way(way, function, inputs, item.has_images)


def measure_tenon(options: argparse.Namespace, model: Path, arrays: Path | None) -> dict[str, Any]:
    """After its outputs agreed, where there are some to agree with."""
    def tenon(command: str, *words: Any) -> subprocess.CompletedProcess:
        inputs = ["--inputs", arrays] if arrays else []
        return call([options.tenon, command, model, "--device", options.device, *inputs, *words],
                    min(LONGEST, options.deadline - time.monotonic()))

    is_checked = bool(arrays) and any(re.match(r"y$|output_\d+$", name) for name in numpy.load(arrays).files)
    try:
        if is_checked:
            done = tenon("run", "--expected", arrays, "--tolerance", TOLERANCE)
            if done.returncode != 0:
                return {"error": (done.stderr.strip() or done.stdout.strip() or f"status {done.returncode}").splitlines()[-1]}
        done = tenon("bench", "--seconds", options.seconds, "--json", "-")
    except subprocess.TimeoutExpired:
        if time.monotonic() >= options.deadline:
            raise
        return {"error": f"took over {LONGEST} s"}
    if done.returncode != 0:
        return {"error": (done.stderr.strip() or f"status {done.returncode}").splitlines()[0]}
    said = json.loads(done.stdout)
    return {"us": 1e3 * said.get("device_median_ms", said["median_ms"]), "clock_us": 1e3 * said["median_ms"],
            "is_checked": is_checked,
            **{key: said[key] for key in ("kernels", "host_steps", "compile_ms")}}


def table(items: list[Item], theirs: dict[str, Any], ours: dict[str, Any]) -> str:
    """Medians in microseconds; how many times as long the fastest of PyTorch takes, by events and by the clock; how fast
    Tenon moves bytes, of what the copy does; and how fast it multiplies."""
    def show(value: float | None, form: str, width: int) -> str:
        return f"{'-' if value is None else format(value, form):>{width}}"

    width = max((len(item.name) for item in items), default=0)
    lines = [f"{'median µs':{width}}" + "".join(f" {title:>9}" for title in (*PEERS, "copy", "tenon")) +
             "".join(f" {title:>7}" for title in ("ratio", "clock", "copy %", "TFLOP/s", "kernels"))]
    problems = []
    for item in items:
        name = item.name
        peers, mine = theirs.get(name, {}), ours.get(name, {})
        own, copy = mine.get("us"), peers.get("copy", {}).get("us")

        def ratio(key: str) -> float | None:
            times = [peers[way][key] for way in PEERS if key in peers.get(way, {})]
            return min(times) / mine[key] if times and key in mine else None

        lines.append(f"{name:{width}}" + "".join(show(peers.get(way, {}).get("us"), ".1f", 10) for way in (*PEERS, "copy")) +
                     show(own, ".1f", 10) + show(ratio("us"), ".2f", 8) + show(ratio("clock_us"), ".2f", 8) +
                     show(100 * copy / own if copy and own else None, ".0f", 8) +
                     show(item.flops / own / 1e6 if item.flops and own else None, ".1f", 8) + show(mine.get("kernels"), "d", 8))
        problems += [f"{name}, {who}: {found['error']}" for who, found in [*peers.items(), ("tenon", mine)] if "error" in found]
    return "\n".join(lines + problems) + "\n"


def run_peers(options: argparse.Namespace) -> int:
    peer = find_torch(options.device)
    file = options.into / "peers.json"
    everything = read(file)
    here = everything.setdefault(name_device(options.tenon, options.device), {})
    theirs = here.setdefault(peer.set_up(), {}) if peer else {}
    ours = here.setdefault(f"tenon {digest(options.tenon)}", {})
    items = [item for item in list_items(options.models, peer, options.device) if re.search(options.only, item.name)]
    ways = options.ways.split(",")
    if options.again:
        for item in items:
            theirs.pop(item.name, None)

    def is_done(item: Item) -> bool:
        return item.name in ours and (not peer or theirs.get(item.name, {}).keys() >= set(ways))

    options.into.mkdir(parents=True, exist_ok=True)
    for item in (item for item in items if not is_done(item)):
        if time.monotonic() >= options.deadline:
            break
        print(item.name, flush=True)
        with tempfile.TemporaryDirectory(dir=options.into.resolve()) as folder:
            model, arrays = item.prepare(Path(folder))
            if peer:
                measure_peers(item, peer, ways, options.device, model, arrays, theirs.setdefault(item.name, {}), options.deadline)
                write(file, everything)
            if item.name not in ours:
                try:
                    ours[item.name] = measure_tenon(options, model, arrays)
                except subprocess.TimeoutExpired:
                    break
                write(file, everything)

    text = table(items, theirs, ours)
    (options.into / "peers.txt").write_text(text)
    print(text, end="")
    left = sum(not is_done(item) for item in items)
    if left:
        print(f"{left} are not done for lack of time: the same command goes on")
    return 1 if left or any("error" in ours[item.name] for item in items) else 0
