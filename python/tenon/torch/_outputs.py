"""How the outputs of a graph come of the results of its program: the function of Python's that calls one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import sympy
import torch
from torch.utils._sympy.printers import PythonPrinter

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


def order_of(tensor: torch.Tensor) -> tuple[int, ...] | None:
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


def is_sorted(order: Sequence[int]) -> bool:
    return list(order) == sorted(order)


def _memory_of(node: torch.fx.Node) -> int | None:
    """What tensors in the same memory share."""
    value = value_of(node)
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    return value.untyped_storage()._cdata


class _Source:
    """The source of a function that calls a program with a list of arguments and makes the outputs of a graph of its results."""

    def __init__(self, placeholders: Sequence[torch.fx.Node]):
        self._objects: dict[str, Any] = {"math": math, "torch": torch}
        self._locals: dict[str, str] = {}  # by what they are
        self._sizes: dict[sympy.Symbol, str] = {}
        for place, node in enumerate(placeholders):
            value = value_of(node)
            if isinstance(value, torch.SymInt) and expression_of(value).is_Symbol:
                self._sizes[expression_of(value)] = f"arguments[{place}]"
        for place, node in enumerate(placeholders):
            value = value_of(node)
            for dim, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
                if expression_of(size).is_Symbol:
                    self._sizes.setdefault(expression_of(size), f"arguments[{place}].shape[{dim}]")

    def name(self, value: Any) -> str:
        """By which the function knows an object."""
        name = f"object_{len(self._objects)}"
        self._objects[name] = value
        return name

    def argument(self, place: int) -> str:
        return self._local(f"arguments[{place}]")

    def _local(self, code: str) -> str:
        return self._locals.setdefault(code, f"local_{len(self._locals)}")

    def knows(self, *sizes: Any) -> bool:
        """Whether the sizes of arguments tell these."""
        return all(symbol in self._sizes for size in sizes for symbol in expression_of(size).free_symbols)

    def size(self, size: Any) -> str:
        expression = expression_of(size)
        locals_of = {each: sympy.Symbol(self._local(self._sizes[each]), integer=True) for each in expression.free_symbols}
        return PythonPrinter().doprint(expression.xreplace(locals_of))

    def sizes(self, sizes: Sequence[Any]) -> str:
        return f"[{', '.join(self.size(each) for each in sizes)}]"

    def function(self, lines: Sequence[str]) -> Callable[[Any, list[Any]], Any]:
        body = [*(f"{name} = {code}" for code, name in self._locals.items()), "arguments.clear()", *lines]
        text = "\n    ".join(["def call(program, arguments):", *body])
        exec(compile(text, "<a graph of torch.compile>", "exec"), self._objects)
        return self._objects["call"]


class Outputs:
    """How the outputs of a graph come of the program's: some are views that PyTorch makes, or arguments."""

    def __init__(self, gm: torch.fx.GraphModule, placeholders: Sequence[torch.fx.Node]):
        self._place = {node: i for i, node in enumerate(placeholders)}
        self._source = _Source(placeholders)
        self.computed: list[torch.fx.Node] = []  # by the program
        self.orders: dict[str, tuple[int, ...]] = {}  # of those that are not row-major in memory
        self._copies: list[tuple[int, torch.fx.Node]] = []  # to the arguments at these places
        (returned,) = (node for node in gm.graph.nodes if node.op == "output")
        outputs = returned.args[0] if isinstance(returned.args[0], (list, tuple)) else (returned.args[0],)
        distinct = {each for each in outputs if isinstance(each, torch.fx.Node)}
        memory = Counter(each for node in {*distinct, *placeholders} if (each := _memory_of(node)) is not None)
        self._shared = {each for each, count in memory.items() if count > 1}
        self._of_arguments = {_memory_of(node) for node in placeholders} - {None}
        self._returned = [self._output(each) for each in outputs]
        self._given_out = set(self.computed)
        for node in gm.graph.nodes:
            if serialise.is_copy_back(node):
                argument, value = node.args[:2]
                order = order_of(value_of(argument))
                if value.op == "call_function" and value not in self._given_out and order is not None and not is_sorted(order):
                    self.orders[value.name] = order  # so that it may be computed there
                self._result(value)
                self._copies.append((self._place[argument], value))
            elif isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable:
                raise NotExpressible(f"{node.name}: {node.target} changes its operand in place")

    @property
    def changed(self) -> set[int]:
        """The arguments that are changed in place."""
        return {place for place, _ in self._copies}

    def overwriting(self, inputs: Sequence[tuple[torch.fx.Node, tuple[int, ...] | None]]) -> list[tuple[int, int]]:
        """Results of the program that belong in the memory of its inputs, and those, by their numbers."""
        found = []
        for number, (node, order) in enumerate(inputs):
            values = [value for place, value in self._copies if place == self._place[node]]
            if len(values) != 1 or values[0] in self._given_out or self.orders.get(values[0].name) != order:
                continue
            if sum(value is values[0] for _, value in self._copies) == 1:
                found.append((self.computed.index(values[0]), number))
        return found

    def caller(
        self, inputs: Sequence[tuple[torch.fx.Node, tuple[int, ...] | None]], device: str
    ) -> Callable[[Any, list[Any]], Any]:
        """What calls a program whose inputs are these placeholders, whose dimensions have these orders in memory."""
        source = self._source
        call = f"program({', '.join(self._input(*each) for each in inputs)})"
        if not inputs:  # no tensor says that PyTorch's are wanted
            call = f"{source.name(_of_arrays)}({call}, {device!r})"
        results = ", ".join(f"result_{i}" for i in range(len(self.computed)))
        write_back = source.name(_write_back)
        copies = [f"{write_back}({source.argument(place)}, {self._in_order(value)})" for place, value in self._copies]
        return source.function(
            [f"{results} = {call}" if results else call, *copies, f"return [{', '.join(self._returned)}]"]
        )

    def _input(self, node: torch.fx.Node, order: tuple[int, ...] | None) -> str:
        argument, value = self._source.argument(self._place[node]), value_of(node)
        if not isinstance(value, torch.Tensor):
            return f"torch.tensor({argument})"
        if order is not None:
            return f"{argument}.permute({order})"
        if any(expression_of(size) == 0 for size in value.shape):  # the token that orders effects is None in calls
            return f"(torch.empty(0) if {argument} is None else {argument})"
        return argument

    def _output(self, output: Any) -> str:
        if output is None or isinstance(output, (bool, int)):
            return repr(output)
        if not isinstance(output, torch.fx.Node):
            return self._source.name(output)
        if serialise.is_copy_back(output):
            output = output.args[0]
        if output in self._place:
            return self._source.argument(self._place[output])
        value = value_of(output)
        if isinstance(value, torch.SymInt) and self._source.knows(value):
            return self._source.size(value)
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return f"{self._result(output)}.item()"
        if not isinstance(value, torch.Tensor):
            raise NotExpressible(f"an output that is a {type(value).__name__}")
        order = order_of(value)
        is_shared = _memory_of(output) in self._shared
        if _is_view(output) and (order is None or is_shared):
            return self._view(output)
        if is_shared and _memory_of(output) in self._of_arguments:
            raise NotExpressible(f"{output.name}: an output in the memory of an input, by {output.target}")
        if order is not None:
            if not is_sorted(order):
                self.orders[output.name] = order
            return _permuted(self._result(output), order)
        if not self._source.knows(*value.stride()):
            raise NotExpressible(f"{output.name}: dynamic strides")
        return f"{self._source.name(_with_strides)}({self._result(output)}, {self._source.sizes(value.stride())})"

    def _in_order(self, node: torch.fx.Node) -> str:
        order = self.orders.get(node.name)
        return self._result(node) if order is None else _permuted(self._result(node), order)

    def _result(self, node: torch.fx.Node) -> str:
        if node not in self.computed:
            self.computed.append(node)
        return f"result_{self.computed.index(node)}"

    def _view(self, node: torch.fx.Node) -> str:
        base = node
        while _is_view(base):
            base = base.args[0]
        value, whole = value_of(node), value_of(base)
        offset = value.storage_offset() - whole.storage_offset()
        if base not in self._place and order_of(whole) is not None and self._source.knows(*value.shape, *value.stride(), offset):
            self._output(base)  # which says in what order it is in memory
            sizes, strides = self._source.sizes(value.shape), self._source.sizes(value.stride())
            return f"{self._result(base)}.as_strided({sizes}, {strides}, {self._source.size(offset)})"
        named = [f"{name}={self._view_argument(each)}" for name, each in node.kwargs.items()]
        given = [self._output(node.args[0]), *(self._view_argument(each) for each in node.args[1:]), *named]
        return f"{self._source.name(node.target)}({', '.join(given)})"

    def _view_argument(self, value: Any) -> str:
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(self._view_argument(each) for each in value)}]"
        return self._output(value)


def _is_view(node: torch.fx.Node) -> bool:
    return node.op == "call_function" and node.target in _VIEWS and isinstance(node.args[0], torch.fx.Node)


def _permuted(result: str, order: Sequence[int]) -> str:
    """A result whose dimensions are in this order in memory."""
    return result if is_sorted(order) else f"{result}.permute({tuple(order.index(dim) for dim in range(len(order)))})"


def _write_back(argument: torch.Tensor, result: torch.Tensor) -> None:
    """What an argument became, where it was not computed in its memory: changes there are to be counted."""
    if result.data_ptr() == argument.data_ptr():
        torch.autograd.graph.increment_version(argument)
    else:
        argument.copy_(result)


def _with_strides(tensor: torch.Tensor, strides: Sequence[int]) -> torch.Tensor:
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def _of_arrays(results: Any, device: str) -> Any:
    """Tensors of PyTorch's own, of a program's results that are tenon.Arrays."""
    if isinstance(results, tuple):
        return tuple(_of_arrays(each, device) for each in results)
    return torch.from_dlpack(results).clone().to(device)
