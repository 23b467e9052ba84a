"""Runs PyTorch's own database of ops (OpInfo) through torch.compile(backend="tenon"), and compares with eager PyTorch by the
tolerances that PyTorch has for its own tests.

usage: python tests/python/opinfo.py [--samples N] [--gradients] [--only NAME,NAME] [--jobs N] [--json FILE]

An entry is `compiled` where no node of it is left to PyTorch, `external` where some are, `eager` where PyTorch runs a whole
graph, `wrong` or `failed`; `skipped` where eager PyTorch itself fails, or draws random numbers that no two runs share.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import json
import multiprocessing
import os
import sys
import unittest
import warnings
from typing import Any

sys.modules.setdefault("expecttest", unittest)  # the database wants it, and uses nothing of it here
warnings.filterwarnings("ignore")

import torch  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

from tenon.torch import backend, listening  # noqa: E402

SAMPLES = 4
_ORDER = ["skipped", "compiled", "external", "eager", "wrong", "failed"]


def name_of(entry: Any) -> str:
    return f"{entry.name}.{entry.variant_test_name}" if entry.variant_test_name else entry.name


def _dtype_of(entry: Any) -> torch.dtype:
    supported = entry.supported_dtypes("cpu")
    return torch.float32 if torch.float32 in supported else sorted(supported, key=str)[0]


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


def _compare(expected: list[Any], actual: list[Any], entry: Any) -> None:
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


def _is_defined(entry: Any, given: tuple[Any, ...], gradients: bool, expected: list[Any]) -> bool:
    """Whether two runs of PyTorch's agree: what is left uninitialised does not."""
    try:
        _compare(expected, _run(entry.op, given, gradients), entry)
    except Exception:
        return False
    return not entry.name.startswith(("empty", "new_empty"))


def _is_nearer_to_double(
    entry: Any, given: tuple[Any, ...], gradients: bool, expected: list[Any], actual: list[Any]
) -> bool:
    """Whether eager PyTorch, and not Tenon, is what is off from the same computed in double."""

    def in_double(leaf: Any) -> Any:
        return leaf.double() if isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32 else leaf

    try:
        exact = _run(entry.op, pytree.tree_map(in_double, given), gradients)
        for wanted, one, other in zip(exact, expected, actual, strict=True):
            if isinstance(wanted, torch.Tensor) and wanted.numel():
                if one.shape != other.shape or not (other - wanted).abs().max() <= (one - wanted).abs().max():
                    return False
    except Exception:
        return False
    return True


def _agrees_with_aot(called: Any, given: tuple[Any, ...], gradients: bool, actual: list[Any], entry: Any) -> bool:
    """Whether Dynamo and AOTAutograd alone give the same, as where a gradient of zeros is none to them."""
    torch._dynamo.reset()
    try:
        _compare(_run(torch.compile(called, backend="aot_eager"), given, gradients), actual, entry)
    except Exception:
        return False
    return True


def check(entry: Any, samples: int = SAMPLES, gradients: bool = False, dynamic: bool | None = None) -> tuple[str, str]:
    """The worst that happens to one of the first samples, and what was said."""
    outcome, message = "skipped", ""

    def worse(found: str, said: str) -> None:
        nonlocal outcome, message
        if _ORDER.index(found) > _ORDER.index(outcome):
            outcome, message = found, said.strip().splitlines()[0][:300] if said.strip() else ""

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inputs = list(entry.sample_inputs("cpu", _dtype_of(entry), requires_grad=gradients))[:samples]
    except Exception as error:
        return "skipped", f"no samples: {error}"
    for sample in inputs:
        given = (sample.input, sample.args, sample.kwargs)
        try:
            expected = _run(entry.op, given, gradients)
        except Exception as error:
            worse("skipped", f"eager: {error}")
            continue
        if not _is_defined(entry, given, gradients, expected):
            worse("skipped", "two runs of PyTorch's differ")
            continue
        reports: list[Any] = []
        torch._dynamo.reset()

        def called(input: Any, *args: Any, **kwargs: Any) -> Any:
            return entry.op(input, *args, **kwargs)

        try:
            with listening(reports.append), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                actual = _run(torch.compile(called, backend=backend, dynamic=dynamic), given, gradients)
        except Exception as error:
            worse("failed", f"{type(error).__name__}: {error}")
            continue
        try:
            _compare(expected, actual, entry)
        except Exception as error:
            if _is_nearer_to_double(entry, given, gradients, expected, actual):
                worse("compiled", "nearer to what PyTorch computes in double")
            elif _agrees_with_aot(called, given, gradients, actual, entry):
                worse("skipped", "PyTorch's own aot_eager differs from eager in the same way")
            else:
                worse("wrong", f"{error}".replace("\n", " "))
            continue
        for report in reports:
            if report.fallback:
                worse("eager", report.fallback)
            elif report.external:
                worse("external", ", ".join(f"{op}: {why}" for _, op, _, why in report.external))
        worse("compiled", "" if reports else "no graph")
    return outcome, message


def _check_number(job: tuple[int, int, bool]) -> tuple[str, str, str]:
    number, samples, gradients = job
    torch.set_num_threads(1)
    entry = op_db[number]
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        outcome, message = check(entry, samples, gradients)
    return name_of(entry), outcome, message


def _check_all(jobs: list[tuple[int, int, bool]], processes: int, note: Any) -> list[tuple[int, int, bool]]:
    """Notes what becomes of each. Where a process died, those that may have been the reason; the rest was not looked at."""
    context = multiprocessing.get_context("spawn")
    died = []
    with concurrent.futures.ProcessPoolExecutor(processes, mp_context=context) as pool:
        waiting = {pool.submit(_check_number, job): job for job in jobs}
        for future in concurrent.futures.as_completed(waiting):
            try:
                note(*future.result())
            except concurrent.futures.process.BrokenProcessPool:
                died.append(waiting[future])
    return sorted(died, key=jobs.index)[:processes]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    only = set(options.only.split(",")) if options.only else None
    numbers = [
        i
        for i, entry in enumerate(op_db)
        if (only is None or entry.name in only or name_of(entry) in only) and (not options.gradients or entry.supports_autograd)
    ]
    found: dict[str, tuple[str, str]] = {}

    def note(name: str, outcome: str, message: str) -> None:
        found[name] = (outcome, message)
        if outcome not in ("compiled", "skipped"):
            print(f"{name}: {outcome}: {message}", flush=True)

    left = [(i, options.samples, options.gradients) for i in numbers]
    while left:
        died = _check_all(left, options.jobs, note)
        left = [job for job in left if name_of(op_db[job[0]]) not in found]
        for job in died:  # one of these ended its process: each by itself
            left.remove(job)
            if _check_all([job], 1, note):
                note(name_of(op_db[job[0]]), "failed", "the process crashes")
    counts = collections.Counter(outcome for outcome, _ in found.values())
    print(", ".join(f"{counts[each]} {each}" for each in _ORDER))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(dict(sorted(found.items())), file, indent=1)
    return 1 if counts["wrong"] or counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
