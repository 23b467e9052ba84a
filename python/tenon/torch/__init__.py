"""Modules and exports of PyTorch, and torch.compile(…, backend="tenon")."""

from __future__ import annotations

import inspect
import io
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tenon import _tenon
from tenon._model import Model, Port
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


class CompiledModule:
    """A torch.nn.Module as a compiled program: called as the module is, and with results in the same structure.

    Its weights are those that the module had when it was compiled.
    """

    def __init__(self, program: _tenon.Program, model: Model, exported: torch.export.ExportedProgram):
        self.program = program
        self.model = model
        self._in_spec = exported.call_spec.in_spec
        self._out_spec = exported.call_spec.out_spec
        # Outputs of the module that are no tensors, or inputs handed back, are not the program's.
        self._outputs = [spec for spec in exported.graph_signature.output_specs if spec.kind.name == "USER_OUTPUT"]

    @property
    def inputs(self) -> list[Port]:
        return self.model.inputs

    @property
    def outputs(self) -> list[Port]:
        return self.model.outputs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        flat, spec = pytree.tree_flatten((args, kwargs))
        if spec != self._in_spec:
            raise UserError(f"the module was compiled for arguments like {self._in_spec}, but was called with {spec}")
        results = self.program(*[each for each in flat if isinstance(each, torch.Tensor)])
        if not isinstance(results, tuple):
            results = (results,)
        computed = iter(results)
        outputs = [
            next(computed) if type(spec.arg).__name__ == "TensorArgument" else getattr(spec.arg, "value", None)
            for spec in self._outputs
        ]
        return pytree.tree_unflatten(outputs, self._out_spec)


def compile_module(
    module: torch.nn.Module, args: Sequence[Any] | None, dynamic: Any, options: Mapping[str, Any]
) -> CompiledModule:
    if args is None:
        raise UserError("a torch.nn.Module is traced with example inputs: pass them as a tuple, tenon.compile(net, (x,))")
    if isinstance(args, torch.Tensor):
        args = (args,)
    exported = export(module, args, dynamic)
    model = load_exported(exported)
    if names := _names(model, module, dynamic):
        model = Model(_tenon.rename_dimensions(model._graph, names), model.name)
    return CompiledModule(model.compile(**options), model, exported)


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
