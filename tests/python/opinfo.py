"""Runs PyTorch's own database of ops (OpInfo) through the backend of torch.compile, and compares with eager PyTorch by the
tolerances that PyTorch has for its own tests.

usage: python tests/python/opinfo.py [--dtypes first|all|NAME,NAME] [--gradients] [--samples N] [--only NAME,NAME] [--first N]
                                     [--jobs N] [--into FILE] [--limit SECONDS]

An entry is `compiled` where no node of it is left to PyTorch, `external` where some are, `eager` where PyTorch runs a whole
graph, `wrong` or `failed`; `skipped` where eager PyTorch itself fails, or draws random numbers that no two runs share. It is
what the worst of its samples is.

The first sample of an entry goes through Dynamo. The others begin with AOTAutograd, which gives the backend the same graphs,
unless it needs a graph break. What was run is kept in FILE, a line for some samples of an entry, and not run again.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import json
import multiprocessing
import multiprocessing.connection
import os
import random
import sys
import time
import unittest
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

sys.modules.setdefault("expecttest", unittest)  # the database wants it, and uses nothing of it here
warnings.filterwarnings("ignore")

import numpy  # noqa: E402
import torch  # noqa: E402
from torch._functorch.aot_autograd import aot_function  # noqa: E402
from torch._functorch.compilers import nop  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

from tenon.torch import backend, listening  # noqa: E402
from tenon.torch._backend import Options, compilers  # noqa: E402

SAMPLES_OF_A_JOB = 48
LONGEST = 120  # seconds, of one sample
_ORDER = ["skipped", "compiled", "external", "eager", "wrong", "failed"]
_BAD = ("wrong", "failed")


def name_of(entry: Any) -> str:
    return f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else entry.name


def _dtypes_of(entry: Any, wanted: str, gradients: bool) -> list[torch.dtype]:
    supported = set(entry.supported_backward_dtypes("cpu") if gradients else entry.supported_dtypes("cpu"))
    ordered = sorted(supported, key=lambda each: (each is not torch.float32, str(each)))
    if wanted == "first":
        return ordered[:1]
    return [each for each in ordered if wanted == "all" or str(each).removeprefix("torch.") in wanted.split(",")]


def _copy(value: Any, gradients: bool) -> Any:
    def of(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        copy = torch.empty_like(leaf).copy_(leaf) if leaf.layout is torch.strided else leaf.clone()
        if leaf.layout is torch.strided and leaf.stride() != copy.stride() and 0 not in leaf.stride():
            copy = torch.empty_strided(leaf.size(), leaf.stride(), dtype=leaf.dtype).copy_(leaf)
        return copy.requires_grad_(gradients and (leaf.is_floating_point() or leaf.is_complex()))

    return pytree.tree_map(of, value)


def _run(function: Any, given: tuple[Any, ...], gradients: bool) -> list[Any]:
    """The tensors that a call gives, and the gradients of their sum."""
    given = _copy(given, gradients)
    torch.manual_seed(0)
    results = [each for each in pytree.tree_leaves(function(given[0], *given[1], **given[2]))]
    if not gradients:
        return results
    inputs = [each for each in pytree.tree_leaves(given) if isinstance(each, torch.Tensor) and each.requires_grad]
    wanted = [each for each in results if isinstance(each, torch.Tensor) and each.requires_grad]
    if not wanted or not inputs:
        return results
    torch.manual_seed(1)
    seeds = [torch.randn_like(each) for each in wanted]
    found = torch.autograd.grad(wanted, inputs, seeds, allow_unused=True)
    return [each.detach() if isinstance(each, torch.Tensor) else each for each in results] + list(found)


def _through_dynamo(function: Any) -> Any:
    torch._dynamo.reset()
    return torch.compile(function, backend=backend, options={"threads": 1})


def _through_aot(function: Any, compile_with: dict[str, Any]) -> Any:
    """Of the same arguments, the tensors of which are what is traced."""

    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

        def of_tensors(*tensors: Any) -> Any:
            values = list(leaves)
            for place, tensor in zip(places, tensors):
                values[place] = tensor
            args, kwargs = pytree.tree_unflatten(values, spec)
            return function(*args, **kwargs)

        return aot_function(of_tensors, **compile_with)(*(leaves[place] for place in places))

    return call


def _compare(expected: list[Any], actual: list[Any]) -> None:
    if len(expected) != len(actual):
        raise AssertionError(f"{len(actual)} results, but {len(expected)} were expected")
    for one, other in zip(expected, actual):
        if not isinstance(one, torch.Tensor):
            if isinstance(one, (int, float, complex, bool)):
                torch.testing.assert_close(other, one, equal_nan=True)
            continue
        if not isinstance(other, torch.Tensor):
            raise AssertionError(f"a {type(other).__name__}, but a tensor was expected")
        torch.testing.assert_close(other, one, equal_nan=True, check_stride=False)


def _agrees(expected: list[Any], run: Callable[[], list[Any]]) -> bool:
    try:
        _compare(expected, run())
    except Exception:
        return False
    return True


def _is_nearer_to_double(
    entry: Any, given: tuple[Any, ...], gradients: bool, expected: list[Any], actual: list[Any]
) -> bool:
    """Whether eager PyTorch, and not Tenon, is what is off from the same computed in double."""

    def in_double(leaf: Any) -> Any:
        return leaf.double() if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf

    try:
        exact = _run(entry.op, pytree.tree_map(in_double, given), gradients)
        for wanted, one, other in zip(exact, expected, actual, strict=True):
            if isinstance(wanted, torch.Tensor) and wanted.numel():
                if one.shape != other.shape or not (other - wanted).abs().max() <= (one - wanted).abs().max():
                    return False
    except Exception:
        return False
    return True


class Outcome(NamedTuple):
    kind: str
    message: str = ""

    @property
    def place(self) -> int:
        return _ORDER.index(self.kind)


def _outcome_of(entry: Any, sample: Any, gradients: bool, through_dynamo: bool) -> Outcome:
    given = (sample.input, sample.args, sample.kwargs)

    def called(input: Any, *args: Any, **kwargs: Any) -> Any:
        return entry.op(input, *args, **kwargs)

    try:
        expected = _run(entry.op, given, gradients)
    except Exception as error:
        return Outcome("skipped", f"eager: {error}")
    # What is left uninitialised differs from run to run.
    if entry.name.startswith(("empty", "new_empty")) or not _agrees(expected, lambda: _run(entry.op, given, gradients)):
        return Outcome("skipped", "two runs of PyTorch's differ")
    reports: list[Any] = []
    try:
        with listening(reports.append):
            compiled = _through_dynamo(called) if through_dynamo else _through_aot(called, compilers(Options(threads=1)))
            actual = _run(compiled, given, gradients)
    except Exception as error:
        if not through_dynamo:  # which breaks graphs where AOTAutograd cannot trace
            return _outcome_of(entry, sample, gradients, True)
        return Outcome("failed", f"{type(error).__name__}: {error}")
    try:
        _compare(expected, actual)
    except Exception as error:
        if _is_nearer_to_double(entry, given, gradients, expected, actual):
            return Outcome("compiled", "nearer to what PyTorch computes in double")
        # As where a gradient of zeros is none to them, or the op itself sets a seed.
        torch._dynamo.reset()
        traced = torch.compile(called, backend="aot_eager") if through_dynamo else _through_aot(called, {"fw_compiler": nop})
        if _agrees(actual, lambda: _run(traced, given, gradients)):
            return Outcome("skipped", "PyTorch's own aot_eager differs from eager in the same way")
        return Outcome("wrong", f"{error}".replace("\n", " "))
    found = [Outcome("compiled", "" if reports else "no graph")]
    for report in reports:
        if report.fallback:
            found.append(Outcome("eager", report.fallback))
        elif report.external:
            found.append(Outcome("external", ", ".join(f"{op}: {why}" for _, op, _, why in report.external)))
    return max(found, key=lambda each: each.place)


def outcomes(
    entry: Any, dtype: torch.dtype | None = None, gradients: bool = False, first: int = 0, count: int = SAMPLES_OF_A_JOB
) -> Iterator[Outcome]:
    """Of some samples."""
    for seed in (torch.manual_seed, random.seed, numpy.random.seed):
        seed(0)
    try:
        dtype = dtype or _dtypes_of(entry, "first", gradients)[0]
        samples = list(itertools.islice(entry.sample_inputs("cpu", dtype, requires_grad=gradients), first + count))[first:]
    except Exception as error:
        yield Outcome("skipped", f"no samples: {error}")
        return
    for i, sample in enumerate(samples, first):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield _outcome_of(entry, sample, gradients, i == 0)


def check(entry: Any, samples: int, gradients: bool = False) -> Outcome:
    """The worst of the first samples."""
    return max(outcomes(entry, gradients=gradients, count=samples), key=lambda each: each.place, default=Outcome("skipped"))


# --- all of it, in processes ---


class Job(NamedTuple):
    """Some samples of an entry."""

    number: int
    dtype: str
    gradients: bool
    first: int
    count: int

    @property
    def key(self) -> str:
        return f"{name_of(op_db[self.number])} {self.dtype} {'gradients' if self.gradients else 'forward'} {self.first}"


def _work(connection: Any) -> None:
    """Sends the outcome of each sample, and None after the last of a job."""
    torch.set_num_threads(1)
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        while (job := connection.recv()) is not None:
            entry = op_db[job.number]
            for outcome in outcomes(entry, getattr(torch, job.dtype), job.gradients, job.first, min(job.count, SAMPLES_OF_A_JOB)):
                connection.send(outcome)
            connection.send(None)


class _Worker:
    def __init__(self, context: Any):
        self.job: Job | None = None
        self.found: list[Outcome] = []
        self.connection, other = context.Pipe()
        self._process = context.Process(target=_work, args=(other,), daemon=True)
        self._process.start()
        other.close()

    def begin(self, job: Job) -> None:
        self.job, self.found, self.since = job, [], time.monotonic()
        self.connection.send(job)

    def end(self) -> None:
        self.connection.send(None)
        self._process.join()

    def is_done(self) -> bool:
        """Takes what it says; where the process has ended, or does not end, a sample has failed, and the job is done."""
        if self.connection.poll():
            try:
                outcome = self.connection.recv()
            except (EOFError, ConnectionError):
                outcome = Outcome("failed", "the process crashes")
            self.since = time.monotonic()
        elif time.monotonic() < self.since + LONGEST:
            return False
        else:
            outcome = Outcome("failed", f"takes more than {LONGEST} s")
            self._process.kill()
        if outcome is not None:
            self.found.append(Outcome(*outcome))
        return outcome is None or self.is_lost()

    def is_lost(self) -> bool:
        return bool(self.found) and self.found[-1].message in ("the process crashes", f"takes more than {LONGEST} s")


def _run_jobs(jobs: list[Job], processes: int, limit: float, note: Callable[[Job, list[Outcome]], None]) -> list[Job]:
    """Those that there was no time for are left."""
    context = multiprocessing.get_context("spawn")
    end = time.monotonic() + limit
    waiting = collections.deque(jobs)
    workers = [_Worker(context) for _ in range(min(processes, len(jobs)))]
    while True:
        if time.monotonic() < end:
            for worker in workers:
                if worker.job is None and waiting:
                    worker.begin(waiting.popleft())
        busy = [worker for worker in workers if worker.job is not None]
        if not busy:
            for worker in workers:
                worker.end()
            return list(waiting)
        multiprocessing.connection.wait([worker.connection for worker in busy], 5)
        for worker in busy:
            if not worker.is_done():
                continue
            job, found = worker.job, worker.found
            note(job, found)
            worker.job = None
            after = job._replace(first=job.first + len(found), count=job.count - len(found))
            if worker.is_lost():
                workers[workers.index(worker)] = _Worker(context)
            if after.count > 0 and (worker.is_lost() or len(found) == SAMPLES_OF_A_JOB):
                waiting.appendleft(after)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtypes", default="first")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--into", default="")
    parser.add_argument("--limit", type=float, default=float("inf"))
    options = parser.parse_args()
    only = set(options.only.split(",")) if options.only else None
    known: dict[str, list[list[str]]] = {}
    if options.into and os.path.exists(options.into):
        with open(options.into, encoding="utf-8") as file:
            known = dict(json.loads(line) for line in file)
    found: dict[tuple[str, str], list[Outcome]] = collections.defaultdict(list)

    def note(job: Job, outcomes: list[Outcome], is_new: bool = True) -> None:
        found[(name_of(op_db[job.number]), job.dtype)] += outcomes
        for i, outcome in enumerate(outcomes, job.first):
            if outcome.kind in _BAD:
                print(f"{name_of(op_db[job.number])} --dtypes {job.dtype} --first {i}: {outcome.kind}: {outcome.message[:300]}", flush=True)
        if is_new and options.into:
            with open(options.into, "a", encoding="utf-8") as file:
                print(json.dumps([job.key, outcomes]), file=file)

    jobs = []
    for i, entry in enumerate(op_db):
        if only is not None and entry.name not in only and name_of(entry) not in only:
            continue
        if options.gradients and not entry.supports_autograd:
            continue
        for dtype in _dtypes_of(entry, options.dtypes, options.gradients):
            job = Job(i, str(dtype).removeprefix("torch."), options.gradients, options.first, options.samples)
            while job is not None and job.key in known:
                outcomes = [Outcome(*each) for each in known[job.key]]
                note(job, outcomes, is_new=False)
                after = job._replace(first=job.first + len(outcomes), count=job.count - len(outcomes))
                job = after if after.count > 0 and len(outcomes) == SAMPLES_OF_A_JOB else None
            if job is not None:
                jobs.append(job)
    jobs.sort(key=lambda job: job.dtype != "float32")
    left = _run_jobs(jobs, options.jobs, options.limit, note)
    worst = collections.Counter(max(each, key=lambda outcome: outcome.place).kind for each in found.values() if each)
    samples = collections.Counter(outcome.kind for each in found.values() for outcome in each)
    for what, counts in (("entries", worst), ("samples", samples)):
        print(f"{sum(counts.values())} {what}: " + ", ".join(f"{counts[each]} {each}" for each in _ORDER))
    if left:
        print(f"no time for {len(left)} of {len(jobs)} entries, or what is left of their samples")
    return 1 if worst["wrong"] or worst["failed"] or left else 0


if __name__ == "__main__":
    sys.exit(main())
