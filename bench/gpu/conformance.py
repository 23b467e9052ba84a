"""conformance.py — bench/gpu/run conformance: the ONNX backend test suite on a device, and which cases end otherwise on the CPU.

A case should pass, or end as the list of known cases says, which is that of tools/check_conformance. One that does not is also
run by the reference evaluator, on the CPU: where that ends the same way, the device is not to blame.
"""

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from results import call, digest, read, run_parts, write

PART = 16  # cases that a process runs


def find_cases(folders: list[Path]) -> dict[str, str]:
    """The folders of cases, and their names, as the list has them: relative to the folder that was given."""
    found = {}
    for folder in (each.resolve() for each in folders):
        for model in sorted(folder.rglob("model.onnx")):
            case = model.parent
            found[str(case)] = str(case.relative_to(folder)) if case != folder else case.name
    return found


def read_known(path: Path) -> dict[str, str]:
    """The status of each case that does not pass."""
    lines = [line.split() for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return {words[1]: words[0] for words in lines}


def run_cases(options: argparse.Namespace, cases: list[str], *how: str) -> dict[str, Any]:
    """Status and detail of each case that there was time for, earlier ones included."""
    file = options.into / "conformance.json"
    everything = read(file)
    results = everything.setdefault(f"tenon {digest(options.tenon)} {' '.join(how)}", {})

    def run_part(part: list[str], seconds: float) -> dict[str, Any]:
        done = call([options.tenon, "conformance", *part, *how, "--json", "-"], seconds)
        if done.returncode not in (0, 1):
            raise SystemExit(f"tenon conformance ended with status {done.returncode}: {done.stderr.strip()}")
        ended = json.loads(done.stdout)["cases"]
        kept = ("status", "detail", "device_nodes", "host_ops")
        return {case: {key: each[key] for key in kept if key in each} for case, each in zip(part, ended, strict=True)}

    def keep(ended: dict[str, Any]) -> None:
        results.update(ended)
        write(file, everything)

    left = [case for case in cases if case not in results]
    run_parts([left[first:first + PART] for first in range(0, len(left), PART)], run_part, keep, options.deadline, options.jobs)
    return {case: results[case] for case in cases if case in results}


def print_placement(results: dict[str, Any]) -> None:
    """How many nodes ran on the device, and how many of which ops on the host; nothing where tenon does not say."""
    placed = [each for each in results.values() if "host_ops" in each]
    if not placed:
        return
    ops = sum((Counter(each["host_ops"]) for each in placed), Counter())
    listed = f" ({', '.join(f'{op} {count}' for op, count in ops.most_common())})" if ops else ""
    print(f"{sum(each['device_nodes'] for each in placed)} nodes on the device, {ops.total()} on the host{listed}")


def print_differences(options: argparse.Namespace, names: dict[str, str], results: dict[str, Any]) -> int:
    """How many there are."""
    known = read_known(options.known)
    unexpected = [case for case in results if results[case]["status"] not in ("pass", known.get(names[case]))]
    on_cpu = run_cases(options, unexpected, "--engine", "reference", "--device", "cpu")
    differences = 0
    for case in unexpected:
        status, elsewhere = results[case]["status"], on_cpu.get(case, {"status": "not run"})["status"]
        if status != elsewhere:
            print(f"{status} {names[case]}: {results[case]['detail']} (on the CPU: {elsewhere})")
            differences += 1
    if differences < len(unexpected):
        print(f"{len(unexpected) - differences} end in ways that {options.known.name} does not explain, but also on the CPU")
    print(f"{differences} differ from the CPU")
    return differences


def run_conformance(options: argparse.Namespace) -> int:
    names = find_cases(options.cases)
    if not names:
        raise SystemExit(f"there are no cases in {', '.join(map(str, options.cases))}")
    results = run_cases(options, list(names), "--engine", "compiled", "--device", options.device)
    counts = Counter(each["status"] for each in results.values())
    print(f"{counts['pass']} passed, {counts['wrong'] + counts['error']} failed ({counts['wrong']} wrong, {counts['error']} errors), "
          f"{counts['unsupported']} unsupported on {options.device}")
    print_placement(results)
    differences = print_differences(options, names, results)
    if len(results) < len(names):
        print(f"{len(names) - len(results)} were not run for lack of time: the same command goes on")
    return 1 if differences or len(results) < len(names) else 0
