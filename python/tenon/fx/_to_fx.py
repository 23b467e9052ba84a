"""Models as torch.fx graphs: the calls that `tenon print --as fx` shows, to run and to edit."""

from __future__ import annotations

import builtins
import functools
import operator
import re
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from tenon import _tenon
from tenon._model import Model
from tenon.errors import UnsupportedError
from tenon.fx import _recurrent
from tenon.fx._modules import restore_modules
from tenon.fx._traced import TracedModule

# What these return for integers is wider than what they take; Tenon's ops keep the dtype.
_WIDENING = {"torch.sum", "torch.prod", "torch.cumsum", "torch.cumprod"}


def graph_module_of(model: Model, modules: bool) -> TracedModule:
    gm = _Builder("").build(_tenon.torch_rows(model._graph), _class_name(model.name))
    if modules:
        restore_modules(gm)
    return gm


def _class_name(name: str) -> str:
    stem = name.replace("\\", "/").rsplit("/", 1)[-1].removeprefix("builtin:").rsplit(".", 1)[0]
    return "".join(part.capitalize() for part in re.split(r"\W|_", stem)) or "Graph"


def _function(target: str) -> Callable[..., Any] | None:
    """What a target names; None where there is no such thing."""
    if target in _recurrent.FUNCTIONS:
        return _recurrent.FUNCTIONS[target]
    first, *rest = target.split(".")
    start = {"torch": torch, "operator": operator}.get(first, getattr(builtins, first, None) if not rest else None)
    try:
        return functools.reduce(getattr, rest, start)
    except AttributeError:
        return None


class _Builder:
    """Makes one torch.fx.Graph, with the tensors that it reads."""

    def __init__(self, place: str):
        self.graph = torch.fx.Graph()
        self.root = torch.nn.Module()
        self.nodes: dict[str, torch.fx.Node] = {}
        self.symbols: dict[str, tuple[torch.fx.Node, int]] = {}  # where the size of that name is to be had
        self.sizes: dict[str, torch.fx.Node] = {}
        self.place = place  # of a nested graph
        self.constants = 0

    def build(self, described: tuple[list[dict[str, Any]], list[Any]], class_name: str) -> TracedModule:
        rows, nested = described
        self.refuse_unknown(rows)
        graphs = {name: _Builder(f" in {name}").build(inner, name) for name, inner in nested}
        for row in rows:
            self.add(row, graphs)
        self.graph.eliminate_dead_code()
        self.graph.lint()
        module = torch.fx.GraphModule(self.root, self.graph, class_name)
        return TracedModule.of(module)

    def refuse_unknown(self, rows: list[dict[str, Any]]) -> None:
        unknown = [row for row in rows if row["op"] == "call_function" and (_function(row["target"]) is None or _recurrent.lacks(row))]
        if unknown:
            names = "; ".join(f"{row['described']} ({row['tenon_op']})" for row in unknown)
            raise UnsupportedError(f"torch has no calls for what these nodes compute{self.place}: {names}")

    # --- rows ---

    def add(self, row: dict[str, Any], graphs: dict[str, torch.fx.GraphModule]) -> None:
        match row["op"]:
            case "placeholder":
                node = self.graph.create_node("placeholder", row["target"], name=row["name"])
            case "get_attr":
                value = graphs.get(row["target"])
                if value is None:
                    value = self.tensor(row["elements"], row["described"])
                path = self.keep(row["target"], value, row.get("tenon_op") == "parameter")
                node = self.graph.create_node("get_attr", path, name=row["name"])
            case "output":
                self.graph.output(self.output(row["args"][0]))
                return
            case _:
                node = self.call(row)
        self.nodes[row["name"]] = node
        if "dtype" in row:
            node.meta["dtype"] = getattr(torch, row["dtype"], None)
        if sources := row.get("sources"):
            node.meta["sources"] = list(sources)
        if "shape" in row:
            node.meta["rank"] = len(row["shape"])
        for axis, size in enumerate(row.get("shape") or ()):
            if isinstance(symbol := _symbol(size), str):
                self.symbols.setdefault(symbol, (node, axis))

    def call(self, row: dict[str, Any]) -> torch.fx.Node:
        target = row["target"]
        as_taken = _as_tensor if target in _recurrent.FUNCTIONS else lambda described: described
        args = [self.argument(as_taken(each)) for each in row["args"]]
        kwargs = {name: self.argument(as_taken(each)) for name, each in row["kwargs"].items()}
        if self.changes_nothing(target, args, kwargs):
            return args[0]
        if target in ("torch.reshape", "torch.broadcast_to") and len(args) == 2:
            args[1] = self.result_sizes(row, *args)
        elif target in ("torch.gather", "torch.scatter", "torch.scatter_reduce"):
            # Tenon's indices may count from the end.
            axis = args[1] if len(args) > 1 else kwargs["dim"]
            size = self.graph.call_method("size", (args[0], axis))
            place = 2 if len(args) > 2 else "index"
            (args if place == 2 else kwargs)[place] = self.graph.call_function(
                torch.remainder, ((args if place == 2 else kwargs)[place], size)
            )
        elif target == "operator.pow" and self.other_dtype(args, row):
            power = self.graph.call_function(operator.pow, tuple(args))
            return self.graph.create_node("call_method", "to", (power, getattr(torch, row["dtype"])), None, row["name"])
        match target:
            case "torch.Tensor.to":
                return self.graph.create_node("call_method", "to", tuple(args), kwargs, row["name"])
            case "torch.Tensor.size" | "len":  # numbers, where Tenon has a tensor
                sizes = (
                    self.graph.call_function(len, tuple(args)) if target == "len" else self.graph.call_method("size", tuple(args))
                )
                return self.graph.create_node("call_function", torch.tensor, (sizes,), {"dtype": torch.int64}, row["name"])
            case "torch.arange" if "dtype" in row:
                kwargs["dtype"] = getattr(torch, row["dtype"])
        if target in _WIDENING and not row.get("dtype", "float").startswith(("float", "bfloat", "complex")):
            kwargs["dtype"] = getattr(torch, row["dtype"])
        return self.graph.create_node("call_function", _function(target), tuple(args), kwargs, row["name"])

    def changes_nothing(self, target: str, args: list[Any], kwargs: dict[str, Any]) -> bool:
        """Bounds that are not there; a reduction of no axes, which to PyTorch is one of all."""
        if target == "torch.clamp":
            return all(each is None for each in (*args[1:], *kwargs.values()))
        return kwargs.get("dim") == []

    def other_dtype(self, args: list[Any], row: dict[str, Any]) -> bool:
        """Whether an argument is a tensor of another dtype than the result: Tenon's has that of the base."""
        dtypes = {each.meta.get("dtype") for each in args if isinstance(each, torch.fx.Node)}
        return dtypes != {getattr(torch, row["dtype"])}

    def result_sizes(self, row: dict[str, Any], x: torch.fx.Node, given: Any) -> Any:
        """The sizes of the result, as far as they are known, in the place of those that are computed: where 0 and -1, or
        1, stand for others."""
        sizes = [self.size(each) for each in row.get("shape") or ()]
        unknown = sizes.count(None)
        if "shape" in row and (unknown == 0 or (unknown == 1 and row["target"] == "torch.reshape")):
            return [-1 if size is None else size for size in sizes]
        if row["target"] == "torch.broadcast_to":
            return self.graph.call_function(torch.broadcast_shapes, (self.graph.call_method("size", (x,)), given))
        return given

    def output(self, described: Any) -> Any:
        match described:
            case ("short", _, elements, _):
                return self.constant(elements)
            case ("list" | "tuple" as kind, parts):
                outputs = [self.output(part) for part in parts]
                return outputs if kind == "list" else tuple(outputs)
        return self.argument(described)

    # --- arguments ---

    def argument(self, described: Any) -> Any:
        match described:
            case ("none",):
                return None
            case ("constant", value):
                return value
            case ("dtype", word):
                return getattr(torch, word)
            case ("short", _, elements, "tensor"):
                return self.constant(elements)
            case ("short", number, elements, slot):
                if slot in ("number", "int") and isinstance(number, list):
                    return number[0]
                return self.constant(elements) if number is None else number
            case ("node", name, slot, dims):
                return self.reference(self.nodes[name], slot, dims)
            case ("list", parts):
                return [self.argument(part) for part in parts]
            case ("tuple", parts):
                return tuple(self.argument(part) for part in parts)
            case ("slice", parts):
                return slice(*(self.argument(part) for part in parts))
        raise AssertionError(f"{described} is no argument")

    def reference(self, node: torch.fx.Node, slot: str, dims: list[Any] | None) -> Any:
        """A value; or where PyTorch takes numbers, those: from sizes where they are known to be such."""
        if slot not in ("number", "int", "ints"):
            return node
        sizes = None if dims is None else [self.size(each) for each in dims]
        if sizes is not None and None not in sizes and (slot == "ints" or len(sizes) == 1):
            return sizes if slot == "ints" else sizes[0]
        return self.graph.call_method("tolist" if slot == "ints" else "item", (node,))

    def size(self, dim: Any) -> Any:
        """A number, or a node that computes it of the sizes of tensors; None where it is not known so."""
        match dim:
            case int() | None:
                return dim
            case str() if dim in self.symbols:
                if dim not in self.sizes:
                    self.sizes[dim] = self.graph.call_method("size", self.symbols[dim])
                return self.sizes[dim]
            case ("floordiv", [a, b]):
                return self.apply(operator.floordiv, a, b)
            case ("mod", [a, b]):
                return self.apply(operator.mod, a, b)
            case ("max" | "min" as name, operands):
                function = torch.sym_max if name == "max" else torch.sym_min
                result = operands[0]
                for each in operands[1:]:
                    result = self.apply(function, result, each)
                return self.size(result) if len(operands) == 1 else result
            case ("sum", terms):
                total: Any = 0
                for coefficient, factors in terms:
                    term: Any = coefficient
                    for factor in factors:
                        term = self.size(factor) if term == 1 else self.apply(operator.mul, term, factor)
                    total = term if isinstance(total, int) and total == 0 else self.apply(operator.add, total, term)
                return total
        return None

    def apply(self, function: Callable[..., Any], a: Any, b: Any) -> Any:
        a, b = (each if isinstance(each, torch.fx.Node) else self.size(each) for each in (a, b))
        return None if a is None or b is None else self.graph.call_function(function, (a, b))

    # --- tensors ---

    def tensor(self, elements: _tenon.Array, described: str) -> torch.Tensor:
        try:
            return torch.from_dlpack(elements).clone()
        except Exception as error:
            raise UnsupportedError(f"torch has no tensors as {described} gives: {error}") from error

    def constant(self, elements: _tenon.Array) -> torch.fx.Node:
        name = f"_short_constant{self.constants}"
        self.constants += 1
        return self.graph.get_attr(self.keep(name, self.tensor(elements, "a constant"), False))

    def keep(self, path: str, value: Any, is_parameter: bool) -> str:
        """Puts it where the path says, as far as Python can: layer.0.weight. Returns where it is."""
        parts = [re.sub(r"\W", "_", part) or "_" for part in path.split(".")]
        module = self.root
        for i, part in enumerate(parts[:-1]):
            if not isinstance(getattr(module, part, torch.nn.Module()), torch.nn.Module) or part in dir(torch.nn.Module):
                parts[i:] = ["_".join(parts[i:])]
                break
            if not hasattr(module, part):
                module.add_module(part, torch.nn.Module())
            module = getattr(module, part)
        name = parts[-1]
        while hasattr(module, name):
            name += "_"
        parts[-1] = name
        if isinstance(value, torch.nn.Module):
            module.add_module(name, value)
        elif is_parameter:
            module.register_parameter(name, torch.nn.Parameter(value, requires_grad=False))
        else:
            module.register_buffer(name, value)
        return ".".join(parts)


def _as_tensor(described: Any) -> Any:
    """A short constant as a tensor, where no number is taken in its place."""
    return (*described[:3], "tensor") if described[0] == "short" else described


def _symbol(size: Any) -> str | None:
    """The name of a size that is a symbol and nothing else."""
    match size:
        case ("sum", [(1, [str() as name])]):
            return name
    return None
