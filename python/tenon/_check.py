"""Passes over torch.fx graphs and Tenon's own: whether they keep what a model computes, and what they gain."""

from __future__ import annotations

import copy
import html
import time
from collections.abc import Callable, Sequence
from typing import Any

from tenon import _passes, _tenon
from tenon._model import Model, Verification, _is_torch_module, load
from tenon._passes import Pass, Rule
from tenon.errors import UserError


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def inputs_of(given: Any) -> tuple[Any, ...]:
    """Inputs, or tensors of standard normal numbers where shapes are given: (1, 3, 32, 32), or a list of those."""
    if hasattr(given, "shape"):
        return (given,)
    given = tuple(given)
    if given and all(_is_size(each) for each in given):
        given = (given,)
    if any(isinstance(each, (tuple, list)) and all(_is_size(size) for size in each) for each in given):
        import torch

        generator = torch.Generator().manual_seed(0)
        return tuple(
            torch.randn(tuple(each), generator=generator) if isinstance(each, (tuple, list)) else each for each in given
        )
    return given


def model_of(model: Any, inputs: Sequence[Any] | None) -> Model:
    return load(model, inputs) if _is_torch_module(model) else load(model)


def verify_models(before: Any, after: Any, inputs: Sequence[Any] | None, **options: Any) -> Verification:
    """Compares them for these inputs and for samples of Tenon's."""
    was, now = model_of(before, inputs), model_of(after, inputs)
    verification = was.verify_against(now, **options)
    if inputs is None or not verification:
        return verification
    given = was.verify_against(now, inputs, **{**options, "gradients": "never"})
    return verification if given else given


class PassChecks(dict[str, "bool | None"]):
    """Whether a pass kept the numbers, the gradients, a well-formed graph, and made no parameters: true where none of it
    failed. None stands for what was not compared, or where comparing proved nothing."""

    def __init__(self, checks: dict[str, bool | None], text: str, verification: Verification | None = None):
        super().__init__(checks)
        self.text = text
        self.verification = verification

    def __bool__(self) -> bool:
        return False not in self.values()

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.text)}</pre>"


_NAMES = {"numerical": "numbers", "gradient": "gradients", "lint": "lint", "parameters": "parameters"}


def _checks_of(verification: Verification) -> PassChecks:
    (compared,) = verification.passes
    words = {"FAILED": False, "unknown": None}
    checks = {name: words.get(compared[ours]["verdict"], True) for name, ours in _NAMES.items()}
    return PassChecks(checks, str(verification), verification)


def verify_pass(
    model: Any, pass_fn: Any, inputs: Any = None, *, samples: int = 3, tolerance: float = 1e-4, gradients: str = "auto"
) -> PassChecks:
    """Whether a pass keeps what a model computes: {"numerical", "gradient", "lint", "parameters"}.

    For a torch.nn.Module or torch.fx.GraphModule, pass_fn is a function of a torch.fx.GraphModule, which changes it in
    place or returns another; inputs are example inputs, or their shapes. For a tenon.Model, pass_fn is a Rule, a Pass,
    or a function of a tenon.Graph. parameters says that the model holds no more numbers than its nodes read before.
    gradients is "auto" (of models that are not large), "always" or "never".
    """
    options = {"samples": samples, "tolerance": tolerance, "gradients": gradients}
    if _is_torch_module(model):
        if inputs is None:
            raise UserError("a torch.nn.Module is traced with example inputs: pass them, or their shapes")
        return _verify_torch_pass(model, pass_fn, inputs_of(inputs), options)
    was = load(model)
    now = _apply(was, pass_fn)
    return _checks_of(verify_models(was, now, None if inputs is None else tuple(inputs), **options))


def _apply(model: Model, pass_fn: Any) -> Model:
    if isinstance(pass_fn, (Rule, Pass)):
        with _passes.using(pass_fn):
            return model.optimize(passes=[pass_fn.name])
    graph = model.graph
    result = pass_fn(graph)
    if isinstance(result, Model):
        return result
    return Model.of(result if isinstance(result, _tenon.Graph) else graph, model.name)


def _verify_torch_pass(module: Any, pass_fn: Callable[[Any], Any], inputs: tuple[Any, ...], options: dict[str, Any]) -> PassChecks:
    import torch

    from tenon.fx import TracedModule, symbolic_trace

    # The pass may change modules in place, so that it gets copies.
    module = copy.deepcopy(module).eval()
    traced = copy.deepcopy(module)
    traced = TracedModule.of(traced) if isinstance(traced, torch.fx.GraphModule) else symbolic_trace(traced)
    result = pass_fn(traced)
    if not isinstance(result, torch.nn.Module):
        result = traced

    def failed(problem: str, *names: str) -> PassChecks:
        return PassChecks({name: name not in names for name in _NAMES}, problem)

    if isinstance(result, torch.fx.GraphModule):
        result.recompile()
        try:
            result.graph.lint()
        except Exception as error:  # torch.fx raises what fits
            return failed(f"the graph is not well formed: {error}", "numerical", "gradient", "lint")
    try:
        with torch.no_grad():
            result(*copy.deepcopy(inputs))
    except Exception as error:
        return failed(f"it no longer runs: {type(error).__name__}: {error}", "numerical", "gradient")
    return _checks_of(verify_models(module, result, inputs, **options))


class Timings:
    """How long calls take: medians and 95th percentiles in milliseconds."""

    def __init__(self, times: dict[str, list[float]], counts: dict[str, int] | None = None):
        import statistics  # not with tenon: it takes a good part of the time that the rest does

        self.median_ms = {name: statistics.median(each) for name, each in times.items()}
        self.p95_ms = {name: sorted(each)[int(len(each) * 0.95)] for name, each in times.items()}
        self.repeats = {name: len(each) for name, each in times.items()}
        self.counts = counts or {}
        self._first = next(iter(times))

    def speed_up(self, name: str) -> float:
        """How many times as fast as the first."""
        return self.median_ms[self._first] / self.median_ms[name]

    def to_dict(self) -> dict[str, Any]:
        return {"median_ms": self.median_ms, "p95_ms": self.p95_ms, "repeats": self.repeats, **self.counts}

    def __str__(self) -> str:
        width = max(len(name) for name in self.median_ms)
        lines = [f"{'':{width}}  {'median':>10}  {'95 %':>10}  {'speed-up':>8}"]
        for name, median in self.median_ms.items():
            lines.append(f"{name:{width}}  {median:7.3f} ms  {self.p95_ms[name]:7.3f} ms  {self.speed_up(name):7.2f}x")
        lines += [f"{name}: {count:,}" for name, count in self.counts.items()]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _measure(calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, list[float]]:
    """In turn, so that what else the machine does meets all alike."""
    for call in calls.values():
        for _ in range(3):
            call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or min(len(each) for each in times.values()) < 5:
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - start) * 1e3)
    return times


def benchmark(original: Any, transformed: Any, inputs: Any, *, seconds: float = 2, threads: int = 0) -> Timings:
    """Measures a model before and after a pass: modules of torch as PyTorch runs them, and both compiled by Tenon.

    inputs are example inputs, or their shapes. transformed may be None: then the original is measured alone.
    """
    given = inputs_of(inputs)
    models = {"original": original} if transformed is None else {"original": original, "transformed": transformed}
    calls: dict[str, Callable[[], Any]] = {}
    counts: dict[str, int] = {}
    for name, model in models.items():
        if _is_torch_module(model):
            calls[f"{name}, PyTorch"] = _eager(model, given)
            counts[f"parameters of the {name}"] = sum(each.numel() for each in model.parameters())
    for name, model in models.items():
        program = model_of(model, given).compile(threads=threads)
        calls[f"{name}, Tenon"] = lambda program=program: program(*given)
    return Timings(_measure(calls, seconds), counts)


def _eager(module: Any, inputs: tuple[Any, ...]) -> Callable[[], Any]:
    import torch

    def call() -> Any:
        with torch.no_grad():
            return module(*inputs)

    return call
