"""results.py — what bench/gpu/run has found so far, kept in files, so that a later call goes on where an earlier one stopped."""

import hashlib
import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}


def write(path: Path, results: dict[str, Any]) -> None:
    """All or nothing, so that what is interrupted leaves the results from before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    partial.replace(path)


def digest(program: Path) -> str:
    """Results are those of one build."""
    return hashlib.sha256(program.read_bytes()).hexdigest()[:12]


def call(words: list[Any], seconds: float) -> subprocess.CompletedProcess:
    """Runs a program; one that takes longer is killed with all that it has started, and throws TimeoutExpired."""
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               errors="replace", start_new_session=True)
    try:
        output, errors = process.communicate(timeout=seconds)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(words, process.returncode, output, errors)


def run_parts(parts: Iterable[Any], work: Callable[[Any, float], dict[str, Any]], keep: Callable[[dict[str, Any]], None],
              deadline: float, jobs: int) -> None:
    """Works on the parts, several at a time, each in the seconds that are left, and keeps what comes out, one at a time. Parts for
    which there was no time have no result."""
    lock = threading.Lock()

    def run_part(part: Any) -> None:
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            return
        try:
            ended = work(part, seconds)
        except subprocess.TimeoutExpired:
            return
        with lock:
            keep(ended)

    pool = ThreadPoolExecutor(jobs)
    try:
        for done in as_completed([pool.submit(run_part, part) for part in parts]):
            done.result()  # throws what it threw
    finally:
        pool.shutdown(cancel_futures=True)
