"""One graph of AOTAutograd as a program of Tenon's: called with the list of its inputs, as torch.compile calls."""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch
from torch.utils import _pytree as pytree
from torch.utils._sympy.printers import PythonPrinter

from tenon import _tenon
from tenon.errors import UnsupportedError
from tenon.torch import _serialise as serialise
from tenon.torch._serialise import NotExpressible, expression_of, value_of

_aten = torch.ops.aten
# What gives another view of the same memory. PyTorch makes such results itself, with the strides that it wants them to have.
_VIEWS = {
    _aten.permute.default, _aten.transpose.int, _aten.t.default, _aten.view.default, _aten.unsqueeze.default,
    _aten.squeeze.default, _aten.squeeze.dim, _aten.squeeze.dims, _aten.expand.default, _aten.slice.Tensor,
    _aten.select.int, _aten.alias.default, _aten.detach.default, _aten.as_strided.default, _aten.diagonal.default,
    _aten.unfold.default,
}  # fmt: skip
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


def _order_of(tensor: torch.Tensor) -> tuple[int, ...] | None:
    """The order of the dimensions in memory, outermost first; None where the memory has gaps or overlaps."""
    sizes, strides = [expression_of(each) for each in tensor.shape], [expression_of(each) for each in tensor.stride()]
    if any(size == 0 for size in sizes):
        return tuple(range(len(sizes)))
    left = [dim for dim in range(len(sizes)) if sizes[dim] != 1]
    inner: list[int] = []
    expected = sympy.Integer(1)
    while left:
        # The innermost of several that fit is the last, so that what is contiguous stays as it is.
        found = next((dim for dim in reversed(left) if sympy.simplify(strides[dim] - expected) == 0), None)
        if found is None:
            return None
        left.remove(found)
        inner.append(found)
        expected = expected * sizes[found]
    order = inner[::-1]
    # Dimensions of 1 go where they stand.
    for dim in range(len(sizes)):
        if sizes[dim] == 1:
            order.insert(min(dim, len(order)), dim)
    return tuple(order)


def _is_sorted(order: Sequence[int]) -> bool:
    return list(order) == sorted(order)


class _Sizes:
    """Sizes in a call: expressions of the sizes of its arguments."""

    def __init__(self, placeholders: Sequence[torch.fx.Node]):
        self._places: dict[sympy.Symbol, tuple[int, int | None]] = {}
        for place, node in enumerate(placeholders):
            value = value_of(node)
            if isinstance(value, torch.SymInt) and expression_of(value).is_Symbol:
                self._places.setdefault(expression_of(value), (place, None))
            elif isinstance(value, torch.Tensor):
                for dim, size in enumerate(value.shape):
                    if expression_of(size).is_Symbol:
                        self._places.setdefault(expression_of(size), (place, dim))

    def knows(self, expression: sympy.Expr) -> bool:
        return all(symbol in self._places for symbol in expression.free_symbols)

    def function_of(self, expression: sympy.Expr) -> Callable[[Sequence[Any]], int]:
        """What computes it of the arguments of a call."""
        if expression.is_Integer:
            size = int(expression)
            return lambda arguments: size

        def source(symbol: sympy.Symbol) -> sympy.Symbol:
            place, dim = self._places[symbol]
            size = "" if dim is None else f".shape[{dim}]"
            return sympy.Symbol(f"arguments[{place}]{size}", integer=True)

        code = PythonPrinter().doprint(expression.xreplace({each: source(each) for each in expression.free_symbols}))
        return eval(f"lambda arguments: {code}")


Finish = Callable[[Sequence[Any], Sequence[Any]], Any]  # an output of the program's results and the arguments


class _Outputs:
    """How the outputs of a graph come of the program's: some are views that PyTorch makes, or arguments."""

    def __init__(self, gm: torch.fx.GraphModule, placeholders: Sequence[torch.fx.Node]):
        self._place = {node: i for i, node in enumerate(placeholders)}
        self._sizes = _Sizes(placeholders)
        self.computed: list[torch.fx.Node] = []  # by the program
        self.orders: dict[str, tuple[int, ...]] = {}  # of those that are not row-major in memory
        self._copies: list[tuple[int, int, tuple[int, ...] | None]] = []  # arguments, results, and their order in memory
        (returned,) = (node for node in gm.graph.nodes if node.op == "output")
        outputs = returned.args[0] if isinstance(returned.args[0], (list, tuple)) else (returned.args[0],)
        distinct = {each for each in outputs if isinstance(each, torch.fx.Node)}
        memory = Counter(each for node in {*distinct, *placeholders} if (each := _memory_of(node)) is not None)
        self._shared = {each for each, count in memory.items() if count > 1}
        self._of_arguments = {_memory_of(node) for node in placeholders} - {None}
        self.finish = [self._finish(each) for each in outputs]
        for node in gm.graph.nodes:
            if serialise.is_copy_back(node):
                argument, value = node.args[:2]
                self._copies.append((self._place[argument], self._result(value), self.orders.get(value.name)))
            elif isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
                raise NotExpressible(f"{node.name}: {node.target} changes its operand in place")

    @property
    def changed(self) -> set[int]:
        """The arguments that are changed in place."""
        return {place for place, _, _ in self._copies}

    def copy_back(self, results: Sequence[Any], arguments: Sequence[Any]) -> None:
        for place, number, order in self._copies:
            result = results[number]
            arguments[place].copy_(
                result if order is None else result.permute([order.index(dim) for dim in range(len(order))])
            )

    def _finish(self, output: Any) -> Finish:
        if not isinstance(output, torch.fx.Node):
            return lambda results, arguments: output
        if serialise.is_copy_back(output):
            output = output.args[0]
        if output in self._place:
            place = self._place[output]
            return lambda results, arguments: arguments[place]
        value = value_of(output)
        if isinstance(value, torch.SymInt) and self._sizes.knows(expression_of(value)):
            size = self._sizes.function_of(expression_of(value))
            return lambda results, arguments: size(arguments)
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            place = self._result(output)
            return lambda results, arguments: results[place].item()
        if not isinstance(value, torch.Tensor):
            raise NotExpressible(f"an output that is a {type(value).__name__}")
        order = _order_of(value)
        is_shared = _memory_of(output) in self._shared
        if self._is_view(output) and (order is None or not _is_sorted(order) or is_shared):
            return self._view(output)
        if is_shared and _memory_of(output) in self._of_arguments:
            raise NotExpressible(f"{output.name}: an output in the memory of an input, by {output.target}")
        place = self._result(output)
        if order is not None and _is_sorted(order):
            return lambda results, arguments: results[place]
        if order is not None:
            self.orders[output.name] = order
            inverse = [order.index(dim) for dim in range(len(order))]
            return lambda results, arguments: results[place].permute(inverse)
        expressions = [expression_of(each) for each in value.stride()]
        if not all(self._sizes.knows(each) for each in expressions):
            raise NotExpressible(f"{output.name}: dynamic strides")
        strides = [self._sizes.function_of(each) for each in expressions]

        def with_strides(results: Sequence[Any], arguments: Sequence[Any]) -> Any:
            actual = [stride(arguments) for stride in strides]
            copy = torch.empty_strided(results[place].shape, actual, dtype=value.dtype, device=results[place].device)
            return copy.copy_(results[place])

        return with_strides

    def _result(self, node: torch.fx.Node) -> int:
        if node not in self.computed:
            self.computed.append(node)
        return self.computed.index(node)

    @staticmethod
    def _is_view(node: torch.fx.Node) -> bool:
        return node.op == "call_function" and node.target in _VIEWS and isinstance(node.args[0], torch.fx.Node)

    def _view(self, node: torch.fx.Node) -> Finish:
        base = self._finish(node.args[0])
        target, rest, named = node.target, node.args[1:], node.kwargs
        sizes = {
            each: self._finish(each) for each in pytree.tree_leaves((rest, named)) if isinstance(each, torch.fx.Node)
        }
        if not sizes:
            return lambda results, arguments: target(base(results, arguments), *rest, **named)

        def view(results: Sequence[Any], arguments: Sequence[Any]) -> Any:
            def known(each: Any) -> Any:
                return sizes[each](results, arguments) if isinstance(each, torch.fx.Node) else each

            given, keywords = pytree.tree_map(known, (rest, named))
            return target(base(results, arguments), *given, **keywords)

        return view


def _memory_of(node: torch.fx.Node) -> int | None:
    """What tensors in the same memory share."""
    value = value_of(node)
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    return value.untyped_storage()._cdata


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
        order = _order_of(value_of(leaf))
        if order is not None and not _is_sorted(order):
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
        self._outputs = _Outputs(gm, self._placeholders)
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
        self._modules: dict[int, list[_Module]] = {}  # by the address of the first weight
        self._unbound: CompiledGraph | None = None
        self._eager: EagerGraph | None = None

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
        order = _order_of(value)
        if order is None:
            self.report.copies.append(node.name)
            return None
        return None if _is_sorted(order) else order

    def _check_strides(self) -> None:
        for node in self._gm.graph.nodes:
            if node.op == "call_function" and getattr(node.target, "__name__", "").split(".")[0] in _BY_STRIDES:
                base = value_of(node.args[0])
                whole = base.storage_offset() == 0 and _order_of(base) == tuple(range(base.dim()))
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
                read = _tenon.read_program(text, self._names, _tenon.Weights(self._weight_types), self._constants)
                reasons = dict(read.refused)
            if not reasons:
                self._inputs = [self._placeholders.index(node) for node in writer.inputs]
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
        if self._eager is not None:
            return self._eager(arguments)
        try:
            program = self._program_for(arguments)
        except UnsupportedError as error:
            if self._options.fallback == "error":
                raise
            warnings.warn(f"PyTorch runs a graph that Tenon cannot compile: {error}", stacklevel=2)
            self._eager = EagerGraph(self._gm, self.report)
            self.report.fallback = str(error)
            return self._eager(arguments)
        if program is None:
            return self._unbound(arguments)
        inputs = [self._input(place, arguments[place]) for place in self._inputs]
        results = program(*inputs)
        if not isinstance(results, tuple):
            results = (results,)
        if not inputs:
            results = [torch.from_dlpack(each).clone().to(self._device) for each in results]
        given = tuple(arguments)
        arguments.clear()
        finished = [finish(results, given) for finish in self._outputs.finish]
        self._outputs.copy_back(results, given)
        return finished

    def _input(self, place: int, argument: Any) -> Any:
        if argument is None:  # the token that orders effects, of which the graph has one as an output
            return torch.empty(0)
        if not isinstance(argument, torch.Tensor):
            return torch.tensor(argument)
        order = self._orders.get(self._placeholders[place].name)
        return argument if order is None else argument.permute(order)

    # --- programs, one for each set of weights ---

    def _program_for(self, arguments: list[Any]) -> Any:
        """The program of these weights; None where they are to be inputs."""
        address = arguments[self._static[0]].data_ptr() if self._static else 0
        if (module := self._find_module(address, arguments)) is not None:
            return module.program
        with self._lock:
            if (module := self._find_module(address, arguments)) is not None:  # compiled by another thread
                return module.program
            # Changes of tensors of inference mode are not counted.
            cannot_watch = any(arguments[place].is_inference() for place in self._static)
            if cannot_watch or sum(map(len, self._modules.values())) == _MOST_MODULES:
                if self._unbound is None:
                    self._unbound = CompiledGraph(self._gm, self.report.kind, (), self._options)
                return None
            module = _Module(self, arguments)
            self._modules[address] = [module, *self._modules.get(address, ())]
            return module.program

    def _find_module(self, address: int, arguments: list[Any]) -> _Module | None:
        for module in self._modules.get(address, ()):
            found = module.weights.compare(arguments, self._static)
            if found == "changed":
                with module.lock:
                    versions = module.weights.versions(arguments, self._static)
                    module.program.renew_constants()
                    module.weights.set_versions(versions)
            if found != "other":
                return module
        return None

    def _compile(self, weights: Any) -> Any:
        graph = _tenon.read_program(self._text, self._names, weights, self._constants).graph
        options = self._options
        disabled = ["freeze-parameters"] if self._static else []
        return _tenon.compile(
            graph, options.numerics, options.precision, options.threads, self._device, None, (), disabled
        )


class _Module:
    """The weights of one module, and the program that was compiled for them."""

    def __init__(self, graph: CompiledGraph, arguments: list[Any]):
        self.lock = threading.Lock()
        self.weights = _tenon.Weights(graph._weight_types)
        self.weights.bind(arguments, graph._static)
        self.program = graph._compile(self.weights)


class EagerGraph:
    """A graph that PyTorch runs."""

    def __init__(self, gm: torch.fx.GraphModule, report: GraphReport):
        self._gm = gm
        self.report = report

    def __call__(self, arguments: list[Any]) -> Any:
        given = tuple(arguments)
        arguments.clear()
        return self._gm(*given)
