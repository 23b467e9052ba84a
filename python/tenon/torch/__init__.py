"""Modules and exports of PyTorch, and torch.compile(…, backend="tenon")."""

from __future__ import annotations

import inspect
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tenon import _tenon
from tenon._model import Model
from tenon._records import Port
from tenon.errors import UserError


def load_exported(program: torch.export.ExportedProgram) -> Model:
    """The model that torch.export traced."""
    file = io.BytesIO()
    torch.export.save(program, file)
    graph, _ = _tenon.load_bytes(file.getvalue(), "module.pt2", None)
    return Model(graph, "module.pt2")


def _is_spec(spec: Any) -> bool:
    """Whether this says which sizes of one tensor may vary, or that none may."""
    return spec is None or (isinstance(spec, dict) and all(isinstance(axis, int) for axis in spec))


def _dims(dynamic: Any) -> Any:
    """The same with torch's Dims for names, one for each name."""
    dims: dict[str, Any] = {}

    def of(spec: Any) -> Any:
        if isinstance(spec, str):
            return dims.setdefault(spec, torch.export.Dim(spec))
        return {axis: of(size) for axis, size in spec.items()} if isinstance(spec, dict) else spec

    return pytree.tree_map(of, dynamic, is_leaf=_is_spec)


def _names(model: Model, module: torch.nn.Module, dynamic: Any) -> dict[str, str]:
    """What the dimensions of the model, which torch numbers, are called in `dynamic`."""
    if isinstance(dynamic, dict):
        order = [name for name in inspect.signature(module.forward).parameters if name in dynamic]
        dynamic = [dynamic[name] for name in order]
    specs, _ = pytree.tree_flatten(dynamic, is_leaf=_is_spec)
    names: dict[str, str] = {}
    for port, spec in zip(model.inputs, specs):
        for axis, size in (spec or {}).items():
            symbol = port.shape[axis] if port.shape is not None else None
            if isinstance(symbol, str) and symbol.isidentifier():
                names[symbol] = size if isinstance(size, str) else getattr(size, "__name__", symbol)
    return names


def export(module: torch.nn.Module, args: Sequence[Any], dynamic: Any = None) -> torch.export.ExportedProgram:
    with torch.no_grad():
        return torch.export.export(module, tuple(args), dynamic_shapes=_dims(dynamic))


def trace_module(
    module: torch.nn.Module, args: Sequence[Any] | Mapping[str, Any] | None, dynamic: Any = None
) -> tuple[torch.export.ExportedProgram, Model]:
    """What torch.export makes of a module with these inputs, and the model of it."""
    if args is None:
        raise UserError("a torch.nn.Module is traced with example inputs: pass them as a tuple, such as (x,)")
    if isinstance(args, Mapping):
        try:
            args = inspect.signature(module.forward).bind(**args).args
        except TypeError as error:
            raise UserError(f"the example inputs are not those of {type(module).__name__}.forward: {error}") from None
    exported = export(module, (args,) if isinstance(args, torch.Tensor) else args, dynamic)
    model = load_exported(exported)
    names = _names(model, module, dynamic)
    graph = _tenon.rename_dimensions(model._graph, names) if names else model._graph
    return exported, Model(graph, type(module).__name__)


def _describe(arguments: Any) -> str:
    """Such as (Tensor, [Tensor, Tensor], scale=float)."""
    if isinstance(arguments, dict):
        return "{" + ", ".join(f"{name}: {_describe(each)}" for name, each in arguments.items()) + "}"
    if isinstance(arguments, (tuple, list)):
        inner = ", ".join([_describe(each) for each in arguments[:4]] + ["…"] * (len(arguments) > 4))
        return f"({inner})" if isinstance(arguments, tuple) else f"[{inner}]"
    return type(arguments).__name__


class CompiledModule:
    """A torch.nn.Module as a compiled program: called as the module is, and with results in the same structure.

    Its weights are those that the module had when it was compiled, and so are arguments that are no tensors.
    """

    def __init__(
        self, program: _tenon.Program, model: Model, exported: torch.export.ExportedProgram, signature: inspect.Signature
    ):
        self.program = program
        self.model = model
        self._signature = signature
        self._args = _describe(exported.example_inputs[0])
        flat, self._in_spec = pytree.tree_flatten(exported.example_inputs)
        self._tensors = [place for place, each in enumerate(flat) if isinstance(each, torch.Tensor)]
        self._constants = [(place, each) for place, each in enumerate(flat) if not isinstance(each, torch.Tensor)]
        self._out_spec = exported.call_spec.out_spec
        self._outputs = [spec.arg for spec in exported.graph_signature.output_specs if spec.kind.name == "USER_OUTPUT"]

    @property
    def inputs(self) -> list[Port]:
        return self.model.inputs

    @property
    def outputs(self) -> list[Port]:
        return self.model.outputs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._results(self.program(*self._arguments(args, kwargs)))

    def run(self, *args: Any, out: Any = None, threads: int | None = None, seed: int = 0, **kwargs: Any) -> Any:
        """Calls it with so many threads, and with tensors for its outputs where `out` has them, in their order."""
        return self._results(self.program.run(*self._arguments(args, kwargs), out=out, threads=threads, seed=seed))

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Those of the program."""
        if kwargs:
            bound = self._signature.bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        flat, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._in_spec:
            raise UserError(f"the module was compiled for arguments {self._args}, but was called with {_describe(args)}")
        for place, value in self._constants:
            if flat[place] != value:
                raise UserError(f"the module was compiled for {value!r} in the place of {flat[place]!r}: compile it for that, too")
        return [flat[place] for place in self._tensors]

    def _results(self, results: Any) -> Any:
        """In the structure of the module's."""
        computed = iter(results if isinstance(results, tuple) else (results,))
        return pytree.tree_unflatten([_result(each, computed) for each in self._outputs], self._out_spec)

    def __repr__(self) -> str:
        return f"<tenon.torch.CompiledModule of {self.model!r}>"


def _result(output: Any, computed: Iterator[Any]) -> Any:
    """One result of a module, of those that the program computes: all but None."""
    kind = type(output).__name__
    if kind == "ConstantArgument" and output.value is None:
        return None
    result = next(computed)
    return result if kind == "TensorArgument" else result.item()


def compile_module(
    module: torch.nn.Module, args: Sequence[Any] | Mapping[str, Any] | None, dynamic: Any, options: Mapping[str, Any]
) -> CompiledModule:
    exported, model = trace_module(module, args, dynamic)
    return CompiledModule(model.compile(**options), model, exported, inspect.signature(module.forward))


def __getattr__(name: str) -> Any:
    # Only who asks for these imports Dynamo.
    if name == "explain":
        from tenon.torch._explain import explain as found
    elif name in ("backend", "listening"):
        from tenon.torch import _backend

        found = getattr(_backend, name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found
