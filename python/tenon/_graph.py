"""Graphs and nodes of Tenon in the words of torch.fx: what need not be fast."""

from __future__ import annotations

import io
import keyword
import operator
from collections.abc import Mapping, Sequence

from tenon import _tenon
from tenon.errors import UserError

TYPE_CHECKING = False  # for those who check types it is true; importing typing takes as long as all of Tenon
if TYPE_CHECKING:
    from typing import Any

    from tenon._records import PythonCode


class TensorType(str):
    """A type such as f32[batch,128], with its dtype, and its shape: integers, and expressions as strings."""

    dtype: str | None
    shape: tuple[int | str, ...] | None

    def __new__(cls, text: str, dtype: str | None, shape: tuple[int | str, ...] | None) -> TensorType:
        made = super().__new__(cls, text)
        made.dtype = dtype
        made.shape = shape
        return made


def _call_function(
    self: _tenon.Graph, the_function: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> _tenon.Node:
    """A new node that calls an op of tenon.ops."""
    if the_function is operator.getitem:
        return args[0][args[1]]
    name = getattr(the_function, "name", None)
    if type(the_function).__module__ != "tenon.ops":
        raise UserError(f"a graph calls functions of tenon.ops, but not {the_function!r}")
    return self._call(name, tuple(args), dict(kwargs or {}))


def _create_node(
    self: _tenon.Graph, op: str, target: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
) -> _tenon.Node:
    match op:
        case "call_function":
            return self.call_function(target, args, kwargs)
        case "get_attr":
            return self.get_attr(target)
        case "output":
            return self.output(args[0])
        case "placeholder":
            return self.placeholder(target, *args)
    raise UserError(f"a node is a placeholder, get_attr, call_function or output, but not {op}")


def _find_nodes(self: _tenon.Graph, *, op: str, target: Any = None) -> list[_tenon.Node]:
    return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]


def _rows(graph: _tenon.Graph) -> list[tuple[str, str, str, str, str]]:
    return [
        (node.op, node.name, str(node.target), str(node.args), str({k: v for k, v in node.kwargs.items()}))
        for node in graph.nodes
    ]


def _print_tabular(self: _tenon.Graph) -> None:
    """Prints a table of its nodes."""
    rows = [("opcode", "name", "target", "args", "kwargs"), *_rows(self)]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    rows.insert(1, tuple("-" * width for width in widths))
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def _python_code(self: _tenon.Graph, root_module: str = "self") -> PythonCode:
    """The function of values that the graph computes: tenon.trace makes a model of it again."""
    from tenon import ops

    known: dict[str, Any] = {"ops": ops}

    def text(argument: Any) -> str:
        if isinstance(argument, _tenon.Node):
            return known_names.get(argument, argument.name)
        if isinstance(argument, (list, tuple)):
            inner = ", ".join(text(each) for each in argument)
            return f"[{inner}]" if isinstance(argument, list) else f"({inner}{',' if len(argument) == 1 else ''})"
        if argument is None or isinstance(argument, (bool, int, str)):
            return repr(argument)
        if isinstance(argument, float):
            return repr(argument) if argument == argument and abs(argument) != float("inf") else f"float('{argument}')"
        name = f"_array{sum(each.startswith('_array') for each in known)}"
        known[name] = argument
        return name

    known_names: dict[_tenon.Node, str] = {}
    body = io.StringIO()
    inputs = []
    for node in self.nodes:
        if node.op == "placeholder":
            inputs.append(node.name)
        elif node.op == "get_attr":
            known[node.name] = node.elements
        elif node.op == "output":
            body.write(f"    return {text(node.args[0])}\n")
        else:
            args = [text(each) for each in node.args]
            args += [f"{key}={text(value)}" for key, value in node.kwargs.items()]
            if node.target is operator.getitem:
                body.write(f"    {node.name} = {args[0]}[{args[1]}]\n")
            else:
                name = node.target.name
                word = f"ops.{name}_" if keyword.iskeyword(name) else f"ops.{name}"
                body.write(f"    {node.name} = {word}({', '.join(args)})\n")
    from tenon._records import PythonCode

    return PythonCode(f"def forward({', '.join(inputs)}):\n{body.getvalue()}", known)


def _next(self: _tenon.Node, step: int) -> _tenon.Node | None:
    nodes = self.graph.nodes
    place = nodes.index(self) + step
    return nodes[place] if 0 <= place < len(nodes) else None


def _replace_arg(self: _tenon.Node, idx: int, arg: _tenon.Node) -> None:
    args = list(self.args)
    args[idx] = arg
    self.args = tuple(args)


_tenon.Graph.call_function = _call_function
_tenon.Graph.create_node = _create_node
_tenon.Graph.find_nodes = _find_nodes
_tenon.Graph.print_tabular = _print_tabular
_tenon.Graph.python_code = _python_code
_tenon.Graph.recompile = lambda self: None  # code is made of a graph when it is compiled
_tenon.Node.next = property(lambda self: _next(self, 1), doc="The node after this one; None after the last.")
_tenon.Node.prev = property(lambda self: _next(self, -1), doc="The node before this one; None before the first.")
_tenon.Node.update_arg = _replace_arg
_tenon.Node.__array_ufunc__ = None  # so that numpy leaves operators between an array and a node to the node
