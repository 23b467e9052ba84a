"""gpu_tests.py — bench/gpu/run tests: those of the test programs that need a GPU or its compiler."""

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

from results import call

# The text of kernels is tested without a GPU, too.
FILTER = "*Cuda*:*Nvrtc*-CudaText.*:CudaFunctions.*"


def count(report: Path) -> dict[str, list[str]]:
    """The names of tests that passed, failed and were skipped, from what googletest wrote."""
    names: dict[str, list[str]] = {"passed": [], "failed": [], "skipped": []}
    for suite in json.loads(report.read_text())["testsuites"]:
        for test in suite["testsuite"]:
            outcome = "failed" if "failures" in test else "skipped" if test["result"] == "SKIPPED" else "passed"
            names[outcome].append(f"{suite['name']}.{test['name']}")
    return names


def run_tests(options: argparse.Namespace) -> int:
    """Tests take seconds, so all of them run each time."""
    os.environ["TENON_DEVICE"] = options.device
    programs = options.programs or [options.tenon.parent / name for name in ("test_runtime", "test_codegen", "test_api")]
    is_right = True
    for program in programs:
        with tempfile.TemporaryDirectory() as folder:
            report = Path(folder) / "report.json"
            try:
                done = call([program.resolve(), f"--gtest_filter={FILTER}", f"--gtest_output=json:{report}"],
                            options.deadline - time.monotonic())
                text = done.stdout + done.stderr
            except (OSError, subprocess.TimeoutExpired) as error:
                text = str(error)
            if not report.exists():
                print(f"{program.name}: FAILED, without a report\n{text[-4000:]}")
                is_right = False
                continue
            names = count(report)
        print(f"{program.name}: " + ", ".join(f"{len(tests)} {outcome}" for outcome, tests in names.items()))
        for outcome in ("failed", "skipped"):
            for test in names[outcome]:
                print(f"  {outcome}: {test}")
        if names["failed"]:
            print(text[-4000:])
        is_right = is_right and not names["failed"] and bool(names["passed"])
    return 0 if is_right else 1
