"""The backend of torch.compile: torch.compile(module, backend="tenon")."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from tenon import _tenon
from tenon.errors import UnsupportedError, UserError
from tenon.torch._decompositions import more_decompositions
from tenon.torch._graph import CompiledGraph, EagerGraph, GraphReport
from tenon.torch._serialise import NotExpressible


@dataclasses.dataclass(frozen=True)
class Options:
    """What torch.compile(…, options={…}) takes."""

    numerics: str = "default"
    precision: str = "f32"
    threads: int = 0  # 0: one for each core
    fallback: str = "warn"  # where PyTorch has to compute something: "warn" of whole graphs, or an "error"
    weights: str = "watched"  # without gradients: "watched", and folded and packed; or "inputs", read at each call

    @staticmethod
    def of(given: Mapping[str, Any] | None) -> Options:
        known = [field.name for field in dataclasses.fields(Options)]
        for name in given or {}:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1)
                hint = f": did you mean {near[0]!r}?" if near else f": there are {', '.join(known)}"
                raise UserError(f"the backend tenon has no option {name!r}{hint}")
        options = Options(**dict(given or {}))
        for field in dataclasses.fields(Options):
            if not isinstance(value := getattr(options, field.name), type(field.default)):
                raise UserError(f"option {field.name!r} of the backend tenon is of the type {type(field.default).__name__}, not {value!r}")
        if options.weights not in ("watched", "inputs"):
            raise UserError(f"weights is 'watched' or 'inputs', but not {options.weights!r}")
        if options.fallback not in ("warn", "error"):
            raise UserError(f"fallback is 'warn' or 'error', but not {options.fallback!r}")
        return options


_listeners: list[Callable[[GraphReport], None]] = []


@contextlib.contextmanager
def listening(listener: Callable[[GraphReport], None]) -> Iterator[None]:
    """Calls the listener with a report of each graph that is compiled."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@functools.cache
def _core_decompositions() -> dict[Any, Callable[..., Any]]:
    """Of the ops of Core ATen's table, those that Tenon does not read as they are."""

    def is_read(op: Any) -> bool:
        return isinstance(op, torch._ops.OpOverload) and _tenon.reads_torch_op(
            f"{op._schema.name.removeprefix('aten::')}.{op._overloadname}"
        )

    table = torch._decomp.core_aten_decompositions()
    found = {op: function for op, function in table.items() if not is_read(op)}
    # Zeros that have no memory of their own, in gradients.
    found[torch.ops.aten._efficientzerotensor.default] = torch.zeros
    return found


def decompositions() -> dict[Any, Callable[..., Any]]:
    return {**_core_decompositions(), **more_decompositions()}


def _static_inputs(kind: str) -> Sequence[int]:
    """Which inputs are parameters and buffers. What is trained is an input like others."""
    if kind != "inference":
        return []
    context = torch._guards.TracingContext.try_get()
    if context is None or context.fw_metadata is None:
        return []
    return list(context.fw_metadata.static_input_indices or [])


def _compile(gm: torch.fx.GraphModule, inputs: Sequence[Any], kind: str, options: Options) -> Any:
    try:
        static = _static_inputs(kind) if options.weights == "watched" else []
        compiled: Any = CompiledGraph(gm, kind, static, options)
    except (NotExpressible, UnsupportedError) as error:
        count = sum(node.op == "call_function" for node in gm.graph.nodes)
        if options.fallback == "error":
            raise UnsupportedError(f"Tenon cannot compile a graph ({kind}, {count} nodes): {error}") from None
        warnings.warn(f"PyTorch runs a graph ({kind}, {count} nodes) that Tenon cannot compile: {error}", stacklevel=2)
        compiled = EagerGraph(gm, GraphReport(kind, count, fallback=str(error)))
    if options.fallback == "error" and compiled.report.external:
        name, op, source, why = compiled.report.external[0]
        raise UnsupportedError(f"Tenon has no {op} ({name}{', at ' + source if source else ''}): {why}")
    for listener in list(_listeners):
        listener(compiled.report)

    def call(arguments: list[Any]) -> Any:
        return compiled(arguments)

    call._boxed_call = True  # type: ignore[attr-defined]  # it empties the list
    return call


def compilers(options: Options) -> dict[str, Any]:
    """What AOTAutograd is told to make of graphs."""
    compile_with = functools.partial(_compile, options=options)
    return {
        "fw_compiler": functools.partial(compile_with, kind="forward"),
        "bw_compiler": functools.partial(compile_with, kind="backward"),
        "inference_compiler": functools.partial(compile_with, kind="inference"),
        "decompositions": decompositions(),
        "partition_fn": min_cut_rematerialization_partition,
        "keep_inference_input_mutations": True,  # what is changed in place is written by the graph, and not copied after it
    }


def backend(
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compiles a graph of Dynamo's, and the graph of its gradients where they are wanted."""
    if mode not in (None, "default"):
        raise UserError(f"the backend tenon has no mode {mode!r}")
    return aot_autograd(**compilers(Options.of(options)))(gm, example_inputs)
