"""One graph of AOTAutograd as a program of Tenon's: called with the list of its inputs, as torch.compile calls."""

from __future__ import annotations

import functools
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree

from tenon import _tenon
from tenon.errors import UnsupportedError
from tenon.torch import _serialise as serialise
from tenon.torch._outputs import Outputs, is_sorted, order_of
from tenon.torch._serialise import NotExpressible, expression_of, value_of

# What reads memory by strides of its own: Tenon's tensors have others than PyTorch's.
_BY_STRIDES = {"as_strided", "as_strided_", "as_strided_copy", "as_strided_scatter"}
# Sets of weights that one graph is compiled for, as the blocks of a model share one. Of more, weights are inputs.
_MOST_MODULES = 64


@dataclass
class GraphReport:
    """What became of one graph."""

    kind: str  # inference, forward or backward
    nodes: int
    external: list[tuple[str, str, str, str]] = field(default_factory=list)  # node, op, where in the source, why
    copies: list[str] = field(default_factory=list)  # inputs that are copied first, as their memory has gaps
    fallback: str = ""  # why PyTorch runs all of it

    def __str__(self) -> str:
        if self.fallback:
            return f"{self.kind}: {self.nodes} nodes, run by PyTorch: {self.fallback}"
        lines = [f"{self.kind}: {self.nodes - len(self.external)} of {self.nodes} nodes compiled"]
        for name, op, source, why in self.external:
            lines.append(f"  PyTorch computes {name} ({op}){' at ' + source if source else ''}: {why}")
        lines += [f"  {name} is copied: its memory has gaps" for name in self.copies]
        return "\n".join(lines)


class _External:
    """A node as PyTorch computes it, on memory of Tenon's."""

    def __init__(self, gm: torch.fx.GraphModule, node: torch.fx.Node):
        self.node = node
        self._leaves, self._spec = pytree.tree_flatten((node.args, node.kwargs))
        self._modules = {}
        self.operands: list[torch.fx.Node] = []
        for each in self._leaves:
            if not isinstance(each, torch.fx.Node):
                continue
            if each.op == "get_attr" and not isinstance(value_of(each), torch.Tensor):
                self._modules[each] = getattr(gm, str(each.target))
            else:
                self.operands.append(each)

    def __call__(self, arrays: list[Any]) -> list[torch.Tensor]:
        given = iter(arrays)

        def actual(leaf: Any) -> Any:
            if not isinstance(leaf, torch.fx.Node):
                return leaf
            if leaf in self._modules:
                return self._modules[leaf]
            tensor = torch.from_dlpack(next(given))
            return self._operand(tensor, leaf) if isinstance(value_of(leaf), torch.Tensor) else tensor.item()

        arguments, keywords = pytree.tree_unflatten([actual(leaf) for leaf in self._leaves], self._spec)
        with torch.no_grad():
            results = self.node.target(*arguments, **keywords)
        results = results if isinstance(results, (list, tuple)) else [results]
        return [each.resolve_conj().resolve_neg().contiguous().cpu() for each in results if isinstance(each, torch.Tensor)]

    def _operand(self, tensor: torch.Tensor, leaf: torch.fx.Node) -> torch.Tensor:
        """As it was when the graph was traced: on its device, with the dimensions in its order in memory. Operators of others
        may keep what they are given, so that it is not Tenon's memory."""
        order = order_of(value_of(leaf))
        if order is not None and not is_sorted(order):
            tensor = tensor.permute(order).contiguous().permute([order.index(dim) for dim in range(len(order))])
        elif getattr(self.node.target, "namespace", "") not in ("aten", "prims"):
            tensor = tensor.clone()
        return tensor.to(value_of(leaf).device)


def _is_random(node: torch.fx.Node) -> bool:
    if not isinstance(node.target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    # What may drop elements draws nothing where it drops none.
    if not any(argument.name == "dropout_p" for argument in node.target._schema.arguments):
        return True
    return dict(serialise.named_arguments(node)).get("dropout_p", 0.0) != 0.0


def _source_of(node: torch.fx.Node) -> str:
    """The line of the user's program that a node comes from."""
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
    files = [line for line in lines if line.startswith("File ")]
    if not files:
        return ""
    words = files[-1].split(", ")
    return f"{words[0].removeprefix('File ').strip(chr(34))}:{words[1].removeprefix('line ')}"


_Callee = Callable[[list[Any]], Any]


class CompiledGraph:
    """Compiled when it is first called, as only then the weights are there."""

    def __init__(self, gm: torch.fx.GraphModule, kind: str, static: Sequence[int], options: Any):
        self._gm = gm
        self._options = options
        self._placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
        self._lock = threading.Lock()
        self._externals: dict[str, tuple[_External, Any, str]] = {}
        self.report = GraphReport(kind, sum(node.op == "call_function" for node in gm.graph.nodes))
        self._device = self._find_device()
        self._check_strides()
        self._outputs = Outputs(gm, self._placeholders)
        # On a GPU nothing is packed, so that weights are arguments like others.
        self._static = [
            place
            for place in static
            if self._device == "cpu" and place not in self._outputs.changed and self._is_weight(self._placeholders[place])
        ]
        values = [value_of(self._placeholders[place]) for place in self._static]
        self._weight_types = [(serialise.DTYPES[each.dtype], [int(size) for size in each.shape]) for each in values]
        self._orders = {
            node.name: order
            for place, node in enumerate(self._placeholders)
            if place not in self._static and (order := self._input_order(node)) is not None
        }
        self._text = self._write()
        self._programs = _programs_of(self)
        self._modules: dict[int, list[_Module]] = {}  # by the address of the first weight
        self._unbound: CompiledGraph | None = None
        self._only: _Callee | None = None  # what all arguments are called with, whatever the weights are

    # --- what the graph is ---

    def _find_device(self) -> str:
        devices = {
            value.device
            for node in self._gm.graph.nodes
            if isinstance(value := value_of(node), torch.Tensor) and not (value.dim() == 0 and value.device.type == "cpu")
        }
        if len(devices) > 1:
            raise NotExpressible(f"tensors on {', '.join(sorted(str(each) for each in devices))}")
        device = next(iter(devices), torch.device("cpu"))
        if device.type not in ("cpu", "cuda"):
            raise NotExpressible(f"tensors on {device}")
        return str(device)

    @staticmethod
    def _is_weight(node: torch.fx.Node) -> bool:
        value = value_of(node)
        return (
            isinstance(value, torch.Tensor)
            and value.is_floating_point()
            and value.dtype in serialise.DTYPES
            and bool(node.users)
            and all(expression_of(size).is_Integer for size in value.shape)
        )

    def _input_order(self, node: torch.fx.Node) -> tuple[int, ...] | None:
        value = value_of(node)
        if not isinstance(value, torch.Tensor) or not node.users:
            return None
        order = order_of(value)
        if order is None:
            self.report.copies.append(node.name)
            return None
        return None if is_sorted(order) else order

    def _check_strides(self) -> None:
        for node in self._gm.graph.nodes:
            if node.op == "call_function" and getattr(node.target, "__name__", "").split(".")[0] in _BY_STRIDES:
                base = value_of(node.args[0])
                whole = base.storage_offset() == 0 and order_of(base) == tuple(range(base.dim()))
                if not whole:
                    raise NotExpressible(f"{node.name}: {node.target} of memory that is laid out otherwise")

    def _write(self) -> str:
        """The graph as text, with all nodes external that have no conversion."""
        self._names = [self._placeholders[place].name for place in self._static]
        reasons = {node.name: "random numbers come from PyTorch's generator" for node in self._gm.graph.nodes if _is_random(node)}
        while True:
            self._add_externals(reasons)
            external = {
                name: serialise.ExternalNode(handle.number, reason, function.operands)
                for name, (function, handle, reason) in self._externals.items()
            }
            permuted = {**self._orders, **self._outputs.orders}
            writer = serialise.Writer(self._gm.graph, self._names, self._outputs.computed, external, permuted)
            text = writer.write()
            reasons = writer.refused
            if not reasons:
                self._constants = {name: getattr(self._gm, name) for name in writer.constants}
                read = _tenon.read_program(text, self._names, self._new_weights(), self._constants)
                reasons = dict(read.refused)
            if not reasons:
                inputs = [(node, self._orders.get(node.name)) for node in writer.inputs]
                self._run = self._outputs.caller(inputs, self._device)
                self._overwriting = self._outputs.overwriting(inputs)
                return text
            if again := [name for name in reasons if name in self._externals]:
                raise NotExpressible(f"{again[0]}: {reasons[again[0]]}")

    def _add_externals(self, reasons: dict[str, str]) -> None:
        nodes = {node.name: node for node in self._gm.graph.nodes}
        for name, reason in reasons.items():
            node = nodes.get(name)
            if node is None or node.op != "call_function":
                raise NotExpressible(f"{name}: {reason}")
            function = _External(self._gm, node)
            self._externals[name] = (function, _tenon.external(function), reason)
            self.report.external.append((name, str(node.target), _source_of(node), reason.splitlines()[0]))

    # --- calls ---

    def __call__(self, arguments: list[Any]) -> Any:
        return (self._only or self._callee(arguments))(arguments)

    def _callee(self, arguments: list[Any]) -> _Callee:
        """What these arguments are to be called with."""
        address = arguments[self._static[0]].data_ptr() if self._static else 0
        if (module := self._find_module(address, arguments)) is not None:
            return module.call
        with self._lock:
            if (module := self._find_module(address, arguments)) is not None:  # compiled by another thread
                return module.call
            try:
                return self._make_callee(address, arguments)
            except UnsupportedError as error:
                if self._options.fallback == "error":
                    raise
                warnings.warn(f"PyTorch runs a graph that Tenon cannot compile: {error}", stacklevel=2)
                self.report.fallback = str(error)
                self._only = EagerGraph(self._gm, self.report)
                return self._only

    # --- programs, one for each set of weights ---

    def _make_callee(self, address: int, arguments: list[Any]) -> _Callee:
        # Changes of tensors of inference mode are not counted.
        cannot_watch = any(arguments[place].is_inference() for place in self._static)
        if cannot_watch or sum(map(len, self._modules.values())) == _MOST_MODULES:
            if self._unbound is None:
                self._unbound = CompiledGraph(self._gm, self.report.kind, (), self._options)
            return self._unbound
        module = _Module(self, self._programs.bound_to(self, address, arguments))
        self._modules[address] = [module, *self._modules.get(address, ())]
        if not self._static:
            self._only = module.call
        return module.call

    def _find_module(self, address: int, arguments: list[Any]) -> _Module | None:
        return next((module for module in self._modules.get(address, ()) if module.bound.fits(arguments)), None)

    def _new_weights(self) -> Any:
        return _tenon.Weights(self._weight_types, self._static)

    def _compile(self, weights: Any) -> Any:
        graph = _tenon.read_program(self._text, self._names, weights, self._constants).graph
        options = self._options
        disabled = ["freeze-parameters"] if self._static else []
        program = _tenon.compile(
            graph, options.numerics, options.precision, options.threads, self._device, None, (), disabled
        )
        program.overwrite(self._overwriting)
        return program


class _BoundProgram:
    """A program, and the weights that it was compiled for."""

    def __init__(self, graph: CompiledGraph, arguments: list[Any]):
        self._lock = threading.Lock()
        self._weights = graph._new_weights()
        self._weights.bind(arguments)
        self.program = graph._compile(self._weights)

    def fits(self, arguments: list[Any]) -> bool:
        """Whether the weights are these; where they have changed, so does what was made of them."""
        found = self._weights.compare(arguments)
        if found == "changed":
            with self._lock:
                versions = self._weights.versions(arguments)
                self.program.renew_constants()
                self._weights.set_versions(versions)
        return found != "other"


class _Programs:
    """Those of graphs that are the same: Dynamo traces a function anew where a guard fails that its graph does not need."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_address: dict[int, list[_BoundProgram]] = {}

    def bound_to(self, graph: CompiledGraph, address: int, arguments: list[Any]) -> _BoundProgram:
        with self._lock:
            known = self._by_address.setdefault(address, [])
            found = next((each for each in known if each.fits(arguments)), None)
            if found is None:
                found = _BoundProgram(graph, arguments)
                known.insert(0, found)
            return found


_shared: weakref.WeakValueDictionary[Any, _Programs] = weakref.WeakValueDictionary()


def _programs_of(graph: CompiledGraph) -> _Programs:
    if graph._constants:  # which the text does not hold
        return _Programs()
    key = graph._text, tuple(graph._static), graph._options, graph._device, tuple(graph._overwriting)
    return _shared.setdefault(key, _Programs())


class _Module:
    """The weights of one module, and how the graph is called with them."""

    def __init__(self, graph: CompiledGraph, bound: _BoundProgram):
        self.bound = bound
        self.call: _Callee = functools.partial(graph._run, bound.program)


class EagerGraph:
    """A graph that PyTorch runs."""

    def __init__(self, gm: torch.fx.GraphModule, report: GraphReport):
        self._gm = gm
        self.report = report

    def __call__(self, arguments: list[Any]) -> Any:
        given = tuple(arguments)
        arguments.clear()
        return self._gm(*given)
