"""sanitize.py — bench/gpu/run sanitize: models under NVIDIA's compute-sanitizer, which looks for accesses outside of buffers
(memcheck) and for threads of a block that do not wait for each other (racecheck)."""

import argparse
import glob
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from results import call, digest, read, run_parts, write

TOOLS = ("memcheck", "racecheck")
LONGEST = 180  # seconds, of one model
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:errors?|hazards?)")


def find_models(folders: list[Path]) -> dict[str, tuple[Path, Path]]:
    """NAME.onnx, or NAME.VARIANT.onnx, with NAME.npz."""
    found = {}
    for folder in folders:
        for model in sorted(folder.glob("*.onnx")):
            arrays = model.with_name(model.name.split(".")[0] + ".npz")
            if arrays.exists():
                found[f"{folder.name}/{model.stem}"] = (model, arrays)
    return found


def find_sanitizer() -> str:
    places = [shutil.which("compute-sanitizer"), *glob.glob("/usr/local/cuda*/bin/compute-sanitizer")]
    found = next(filter(None, places), None)
    if not found:
        raise SystemExit("there is no compute-sanitizer in PATH or /usr/local/cuda*/bin: it comes with CUDA's toolkit")
    return found


def judge(done: subprocess.CompletedProcess) -> str:
    """ok, or what is wrong."""
    text = done.stdout + done.stderr
    summary = SUMMARY.search(text)
    said = [line.removeprefix("=========").strip() for line in text.splitlines() if line.startswith("=========")]
    complaint = next((line for line in said if re.match(r"Invalid|Error|Warning|Race|Program hit|Misaligned", line)), "")
    if summary and int(summary[1]) > 0:
        return f"{summary[0]}: {complaint}"
    if done.returncode != 0:
        lines = text.strip().splitlines()
        return f"status {done.returncode}: {next((line for line in lines if line.startswith('tenon:')), lines[-1] if lines else '')}"
    return "ok" if summary else "compute-sanitizer wrote no summary"


def run_sanitize(options: argparse.Namespace) -> int:
    if not options.device.startswith("cuda"):
        raise SystemExit("compute-sanitizer is for GPUs: --device cuda")
    sanitizer, models = find_sanitizer(), find_models(options.models)
    if not models:
        raise SystemExit(f"there is no NAME.onnx with NAME.npz in {', '.join(map(str, options.models))}")
    file = options.into / "sanitize.json"
    everything = read(file)
    results = everything.setdefault(f"tenon {digest(options.tenon)} on {options.device}", {})

    def work(item: tuple[str, str], seconds: float) -> dict[str, Any]:
        tool, name = item
        model, arrays = models[name]
        try:
            done = call([sanitizer, "--tool", tool, "--error-exitcode", 99, options.tenon, "run", model, "--device", options.device,
                         "--inputs", arrays], min(seconds, LONGEST))
        except subprocess.TimeoutExpired:
            return {f"{tool} {name}": f"took over {LONGEST} s"} if seconds > LONGEST else {}
        return {f"{tool} {name}": judge(done)}

    def keep(ended: dict[str, Any]) -> None:
        for name, outcome in ended.items():
            print(f"{name}: {outcome}", flush=True)
        results.update(ended)
        write(file, everything)

    items = [(tool, name) for name in models for tool in TOOLS]
    for item in items:
        if " ".join(item) in results:
            print(f"{' '.join(item)}: {results[' '.join(item)]} (earlier)")
    run_parts([item for item in items if " ".join(item) not in results], work, keep, options.deadline, options.jobs)
    outcomes = [results.get(" ".join(item)) for item in items]
    right, not_run = outcomes.count("ok"), outcomes.count(None)
    print(f"{right} ok, {len(items) - right - not_run} not, {not_run} not run")
    return 0 if right == len(items) else 1
