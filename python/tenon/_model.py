"""Models, and what is done with them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence

from tenon import _passes, _tenon
from tenon.errors import UserError

TYPE_CHECKING = False  # for those who check types it is true; importing typing takes as long as all of Tenon
if TYPE_CHECKING:
    from typing import Any

    from tenon._records import Port


def _ports(described: list[Any]) -> list[Port]:
    from tenon._records import Port

    return [Port(*each) for each in described]


def _signature(callee: Model | _tenon.Program) -> str:
    """Such as (x: f32[n,8]) -> (y: f32[n])."""
    inputs, outputs = (", ".join(f"{port.name}: {port.type}" for port in ports) for ports in (callee.inputs, callee.outputs))
    return f"({inputs}) -> ({outputs})"


def _in_order(tensors: Any, ports: list[Port]) -> Sequence[Any] | None:
    """Tensors that are given as a sequence, by name, or alone."""
    if not isinstance(tensors, Mapping):
        return [tensors] if hasattr(tensors, "shape") else tensors
    names = [port.name for port in ports]
    if {*names} != {*tensors}:
        raise UserError(f"tensors are wanted for {', '.join(names)}, but are given for {', '.join(tensors)}")
    return [tensors[name] for name in names]


class _Shown:
    """What prints as the command line does, and shows itself in a notebook."""

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"


class _Result(_Shown):
    def __init__(self, result: _tenon.Result):
        self._text = result.text
        self._json = result.json

    def to_dict(self) -> dict[str, Any]:
        """The numbers, as the command line writes them with --json."""
        import json

        return json.loads(self._json)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text


class Optimization(_Result):
    """What optimising a model did: .rewrites, and .remarks, what it left alone and why."""

    def __init__(self, result: _tenon.Result, remarks: str):
        super().__init__(result)
        data = self.to_dict()
        self.rewrites: list[dict[str, Any]] = data["rewrites"]
        self.passes: list[dict[str, Any]] = data["passes"]
        self.remarks: list[dict[str, Any]] = data["remarks"]
        self._remarks = remarks

    def explain(self) -> str:
        """The remarks as text, as tenon optimize --remarks prints them."""
        return self._remarks


class Verification(_Result):
    """Whether a model is still the same after every pass and once it is compiled: true where nothing failed."""

    def __init__(self, result: _tenon.Result):
        super().__init__(result)
        self.passed: bool = result.passed
        self.passes: list[dict[str, Any]] = self.to_dict()["passes"]

    def __bool__(self) -> bool:
        return self.passed


class Benchmark(_Result):
    """How long a compiled model takes, and what it needs."""

    def __init__(self, result: _tenon.Result):
        super().__init__(result)
        data = self.to_dict()
        self.median_ms: float = data["median_ms"]
        self.speed_up: float | None = data.get("speed_up")


class Culprit(_Shown):
    """The one rewrite, or kernel, that changes what a model computes."""

    def __init__(self, culprit: _tenon.Culprit):
        self._culprit = culprit
        self.level: str = culprit.level
        self.rule: str = culprit.rule
        self.pass_name: str = culprit.pass_name
        self.nodes: list[str] = culprit.nodes
        self.part: str = culprit.part  # of compiling that is wrong, where no rewrite is
        self.error: float = culprit.error

    def save(self, path: str | os.PathLike[str]) -> tuple[str, str]:
        """Writes the smallest model that shows it, and its inputs beside it; returns both paths."""
        return self._culprit.save(os.fspath(path))

    def __str__(self) -> str:
        return self._culprit.text

    __repr__ = __str__


class Report:
    """Everything there is to see of a model on its way down, as one page."""

    def __init__(self, data: str, page: str):
        self._data = data
        self._page = page

    def to_dict(self) -> dict[str, Any]:
        import json

        return json.loads(self._data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page, or its data where the name ends in .json."""
        name = os.fspath(path)
        with open(name, "w", encoding="utf-8") as file:
            file.write(self._data if name.endswith(".json") else self._page)

    def __repr__(self) -> str:
        return f"<tenon.Report of {self.to_dict()['model']}>"

    def _repr_html_(self) -> str:
        import html

        # In a frame of its own, as the page brings styles and scripts; where those are stripped, the line above it stays.
        return (
            f"<p>{html.escape(repr(self))}</p>"
            f'<iframe sandbox="allow-scripts" style="width:100%;height:40em;border:0" srcdoc="{html.escape(self._page)}"></iframe>'
        )


class Model(_Shown):
    """A graph with the names and parameters that it was read with. It never changes: optimize and bind give new ones."""

    def __init__(self, graph: _tenon.ModelGraph, name: str, source: _tenon.Source | None = None):
        self._graph = graph
        self.name = name
        self._source = source  # the ONNX file, if it was read from one
        self._optimized_with: tuple[Any, ...] | None = None  # the options of optimize
        #: What optimising did, where this is the result of it.
        self.optimization: Optimization | None = None

    # --- what it is ---

    @property
    def inputs(self) -> list[Port]:
        return _ports(_tenon.inputs(self._graph))

    @property
    def outputs(self) -> list[Port]:
        return _ports(_tenon.outputs(self._graph))

    @property
    def dimensions(self) -> list[str]:
        """The names of sizes that inputs leave open."""
        return _tenon.dimensions(self._graph)

    @property
    def node_count(self) -> int:
        return _tenon.node_count(self._graph)

    @property
    def graph(self) -> _tenon.Graph:
        """A copy that can be edited; Model.of(graph) makes a model of it again."""
        return _tenon.edit(self._graph)

    @staticmethod
    def of(graph: _tenon.Graph, name: str = "graph") -> Model:
        graph.lint()
        return Model(_tenon.finish(graph), name)

    def print(self, form: str = "tenon", *, stage: str = "imported", device: str | None = None, why: str = "") -> str:
        """The text that tenon print --as FORM --stage STAGE shows."""
        return _tenon.show(self._graph, form, stage, device, why, _passes.active())

    def __str__(self) -> str:
        return self.print()

    def __repr__(self) -> str:
        return f"<tenon.Model {self.name}: {_signature(self)}, {self.node_count} nodes>"

    # --- what becomes of it ---

    def bind(self, sizes: Mapping[str, int] | None = None, **named: int) -> Model:
        """The model with these sizes for dimensions that inputs leave open."""
        all_sizes = {**(sizes or {}), **named}
        source = self._source and _tenon.bind_source(self._source, all_sizes)
        model = Model(_tenon.bind(self._graph, all_sizes), self.name, source)
        model._optimized_with = self._optimized_with
        return model

    def optimize(
        self, numerics: str = "default", *, passes: Sequence[str] = (), disabled: Sequence[str] = ()
    ) -> Model:
        """A smaller, faster model that computes the same; .optimization says what was done."""
        options = (numerics, list(passes), list(disabled), _passes.active())
        graph, result, remarks = _tenon.optimize(self._graph, *options)
        model = Model(graph, self.name)
        model.optimization = Optimization(result, remarks)
        # How large a model may become that passes of the user's changed is for these to say.
        added = {each.name for each in _passes.active()}
        if not any(each["changes"] for each in model.optimization.passes if each["name"] in added):
            model._source = self._source
            model._optimized_with = options
        return model

    def compile(
        self,
        *,
        sizes: Mapping[str, int] | None = None,
        numerics: str = "default",
        precision: str = "f32",
        threads: int = 0,
        device: str | None = None,
        cache: str | os.PathLike[str] | None = None,
    ) -> _tenon.Program:
        """A program for this machine: see tenon.compile."""
        model = self.bind(sizes) if sizes else self
        folder = None if cache is None else os.fspath(cache)
        program = _tenon.compile(model._graph, numerics, precision, threads, device, folder, _passes.active(), [])
        program.model = model
        return program

    def to_fx(self, *, modules: bool = False) -> Any:
        """A torch.fx.GraphModule of PyTorch's functions that computes the same: code to run, edit and compile.

        With modules, calls that have the weights under a path to themselves become modules there, such as a Conv2d.
        """
        from tenon.fx import _to_fx

        return _to_fx.graph_module_of(self, modules)

    def save(self, path: str | os.PathLike[str], *, opset: int | None = None) -> None:
        """Writes it as ONNX or in the text form, as the name ends in .onnx or .tenon.

        What optimize made of an ONNX file is written with no more nodes than the file has, nor noticeably more bytes:
        what did not pay is reverted, as tenon optimize does.
        """
        name = os.fspath(path)
        if self._source is not None and self._optimized_with is not None and name.endswith(".onnx"):
            _tenon.save_optimized(self._graph, self._source, name, opset, *self._optimized_with)
        else:
            _tenon.save(self._graph, name, opset)

    def verify(
        self,
        inputs: Any = None,
        *,
        samples: int = 3,
        tolerance: float = 1e-4,
        numerics: str = "default",
        gradients: str = "auto",
        device: str | None = None,
    ) -> Verification:
        """Checks, pass by pass and down to the compiled program, that it stays the same.

        Inputs, here and below, are a sequence of tensors, a dictionary of them by name, or the only one.
        """
        given = _in_order(inputs, self.inputs)
        return Verification(
            _tenon.verify(self._graph, given, samples, tolerance, numerics, gradients, device, _passes.active())
        )

    def verify_against(
        self,
        other: Model,
        inputs: Any = None,
        *,
        samples: int = 3,
        tolerance: float = 1e-4,
        gradients: str = "auto",
    ) -> Verification:
        """Checks that another model computes what this one does: its numbers, gradients, form and parameters."""
        given = _in_order(inputs, self.inputs)
        return Verification(_tenon.verify_against(self._graph, other._graph, given, samples, tolerance, gradients))

    def bisect(
        self,
        inputs: Any = None,
        expected: Any = None,
        *,
        tolerance: float = 1e-4,
        numerics: str = "default",
    ) -> Culprit | None:
        """The one rewrite or kernel that changes what it computes; None where there is none."""
        inputs, expected = _in_order(inputs, self.inputs), _in_order(expected, self.outputs)
        found = _tenon.bisect(self._graph, inputs, expected, tolerance, numerics, _passes.active())
        return None if found is None else Culprit(found)

    def bench(
        self,
        inputs: Any = None,
        *,
        against: str = "",
        seconds: float = 2,
        **options: Any,
    ) -> Benchmark:
        """Measures it, beside the reference evaluator ("reference"), a kernel for each node ("unfused"), or without
        some passes ("without=NAME,NAME"). The options are threads, numerics, precision and device: see tenon.compile."""
        from tenon._records import MeasureOptions

        how = MeasureOptions(**options)
        return Benchmark(_tenon.bench(self._graph, _in_order(inputs, self.inputs), self.name, against, seconds, *how, _passes.active()))

    def report(
        self,
        inputs: Any = None,
        *,
        seconds: float = 1,
        verify: bool = True,
        **options: Any,
    ) -> Report:
        """Shows it at every stage, with what was measured and verified. The options are those of bench."""
        from tenon._records import MeasureOptions

        how = MeasureOptions(**options)
        return Report(*_tenon.report(self._graph, _in_order(inputs, self.inputs), self.name, seconds, verify, *how, _passes.active()))


_tenon.Program.model = None  # what it was compiled from, which Model.compile sets
_tenon.Program.inputs = property(lambda self: _ports(_tenon.program_inputs(self)), doc="What it takes.")
_tenon.Program.outputs = property(lambda self: _ports(_tenon.program_outputs(self)), doc="What it gives.")
_tenon.Program.__repr__ = lambda self: f"<tenon.Program: {_signature(self)}>"


def load(
    model: Any,
    args: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    dynamic: Any = None,
    name: str | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> Model:
    """Reads a model: the path of a .onnx, .pt2, .gguf or .tenon file, builtin:NAME, an onnx.ModelProto, a torch
    ExportedProgram, or the bytes of such a file, whose kind the ending of `name` then says.

    A torch.nn.Module, or torch.fx.GraphModule, is traced by torch.export with the example inputs args, in order or by name, whose sizes
    vary as dynamic says (see compile).

    A model in memory whose weights are in files of their own wants the folder where these are.
    """
    if _is_torch_module(model):
        from tenon.torch import trace_module

        _warn_of_training(model)
        return trace_module(model, args, dynamic)[1]
    if args is not None or dynamic is not None:
        raise UserError("args and dynamic are for a torch.nn.Module; sizes of other models are fixed by sizes={...}")
    where = None if folder is None else os.fspath(folder)
    if isinstance(model, Model):
        return model
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        graph, source = _tenon.load(path)
        return Model(graph, path, source)
    if isinstance(model, (bytes, bytearray, memoryview)):
        if name is None:
            raise UserError('bytes need a name that says what they are, such as name="model.onnx"')
        graph, source = _tenon.load_bytes(bytes(model), name, where)
        return Model(graph, name, source)
    kind = type(model)
    if kind.__module__.startswith("onnx") and kind.__name__ == "ModelProto":
        name = name or "model.onnx"
        graph, source = _tenon.load_bytes(model.SerializeToString(), name, where)
        return Model(graph, name, source)
    if kind.__module__.startswith("torch.export"):
        from tenon.torch import load_exported

        return load_exported(model)
    raise UserError(
        f"cannot load a {kind.__module__}.{kind.__name__}: pass a path, bytes, an onnx.ModelProto, "
        "an ExportedProgram, or a torch.nn.Module with example inputs"
    )


def compile(
    model: Any,
    args: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    dynamic: Any = None,
    sizes: Mapping[str, int] | None = None,
    numerics: str = "default",
    precision: str = "f32",
    threads: int = 0,
    device: str | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> Any:
    """Compiles a model for this machine, or for device "cuda" or "cuda:N". Call the result with tensors of torch or
    numpy, and get such tensors back; nothing is copied. Its .inputs and .outputs say what it takes and gives, and .model
    is what it was made of, to verify, measure or report on.

    The model is what load takes, or a torch.nn.Module: then args are example inputs, in order or by name, by which torch.export traces it,
    and dynamic says which of their sizes may vary, as torch.export's dynamic_shapes does.
    sizes fixes dimensions by name. numerics is "default" (the same numbers but for rounding), "strict" (the optimiser
    changes no bit) or "fast". cache is a folder for generated code, "" for none; by default the user's.
    """
    options = {"sizes": sizes, "numerics": numerics, "precision": precision, "threads": threads, "device": device, "cache": cache}
    if _is_torch_module(model):
        from tenon.torch import compile_module

        _warn_of_training(model)
        return compile_module(model, args, dynamic, options)
    if args is not None or dynamic is not None:
        raise UserError("args and dynamic are for a torch.nn.Module; sizes of other models are fixed by sizes={...}")
    return load(model).compile(**options)


def _is_torch_module(model: Any) -> bool:
    return any(base.__module__ == "torch.nn.modules.module" and base.__name__ == "Module" for base in type(model).__mro__)


def _warn_of_training(module: Any) -> None:
    for each in module.modules():
        if each.training and any(base.__name__ == "_BatchNorm" for base in type(each).__mro__):
            message = f"{type(each).__name__} is compiled as it trains: call module.eval() first, if the module is to infer"
            return warnings.warn(message, stacklevel=3)


def trace(function: Callable[..., Any], *types: str, name: str | None = None) -> Model:
    """The model that a function of values computes: tenon.trace(lambda x: ops.relu(x + 1), "f32[n,8]")."""
    import inspect

    names = list(inspect.signature(function).parameters)
    if len(names) != len(types):
        raise UserError(f"the function takes {len(names)} values, but {len(types)} types are given")
    return Model(_tenon.trace(function, list(types), names), name or getattr(function, "__name__", "traced"))
