"""Writes a graph of torch.fx as torch.export does: the JSON that Tenon's reader of .pt2 archives takes."""

from __future__ import annotations

import json
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.utils._sympy import functions as sympy_functions

# The numbers that torch.export gives to dtypes.
_SCALAR_TYPES = {
    torch.uint8: 1, torch.int8: 2, torch.int16: 3, torch.int32: 4, torch.int64: 5, torch.float16: 6, torch.float32: 7,
    torch.float64: 8, torch.complex32: 9, torch.complex64: 10, torch.complex128: 11, torch.bool: 12, torch.bfloat16: 13,
    torch.uint16: 28, torch.float8_e4m3fn: 29, torch.float8_e5m2: 30, torch.float8_e4m3fnuz: 31, torch.float8_e5m2fnuz: 32,
}  # fmt: skip
# Those that Tenon computes with, by its names.
DTYPES = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int64: "i64",
    torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8", torch.uint16: "u16", torch.bool: "bool",
    torch.complex64: "c64", torch.complex128: "c128", torch.float8_e4m3fn: "f8e4m3fn", torch.float8_e5m2: "f8e5m2",
    torch.float8_e4m3fnuz: "f8e4m3fnuz", torch.float8_e5m2fnuz: "f8e5m2fnuz",
}  # fmt: skip

# Where nothing asks for the indices, which are those of planes whose sizes must be known.
_WITHOUT_INDICES = {
    torch.ops.aten.max_pool2d_with_indices.default: "torch.ops.aten.max_pool2d.default",
    torch.ops.aten.max_pool3d_with_indices.default: "torch.ops.aten.max_pool3d.default",
}

_SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


class NotExpressible(Exception):
    """What the format, or Tenon, has no word for."""


def value_of(node: torch.fx.Node) -> Any:
    """What a node was traced to give."""
    return node.meta["val"] if "val" in node.meta else node.meta.get("example_value")


def expression_of(size: Any) -> sympy.Expr:
    """Of a size, without asking for its value: that would fix it."""
    return size.node.expr if isinstance(size, _SYMBOLIC) else sympy.Integer(size)


def is_copy_back(node: torch.fx.Node) -> bool:
    """Whether this writes what became of an input that is changed in place: AOTAutograd does so at the end."""
    return (
        node.target is torch.ops.aten.copy_.default
        and node.args[0].op == "placeholder"
        and all(user.op == "output" for user in node.users)
    )


def _size(size: Any) -> dict[str, Any]:
    expression = expression_of(size)
    if expression.is_Integer:
        return {"as_int": int(expression)}
    return {"as_expr": {"expr_str": str(expression)}}


def _meta(tensor: torch.Tensor) -> dict[str, Any]:
    if tensor.layout is not torch.strided:
        raise NotExpressible(f"a tensor of layout {tensor.layout}")
    if tensor.dtype not in DTYPES:
        raise NotExpressible(f"a tensor of {tensor.dtype}")
    return {
        "dtype": _SCALAR_TYPES[tensor.dtype],
        "sizes": [_size(each) for each in tensor.shape],
        "strides": [_size(each) for each in tensor.stride()],
        "storage_offset": {"as_int": 0},
        "layout": 7,
    }


def _number(value: float) -> Any:
    """As JSON, which has no infinities."""
    if value != value:
        return "NaN"
    return "Infinity" if value == float("inf") else "-Infinity" if value == float("-inf") else value


def _is_tensor(node: Any) -> bool:
    return isinstance(node, torch.fx.Node) and isinstance(value_of(node), torch.Tensor)


def _is_symbol(node: Any) -> bool:
    return isinstance(node, torch.fx.Node) and isinstance(value_of(node), _SYMBOLIC)


def _symbol(node: torch.fx.Node) -> dict[str, Any]:
    kind = {torch.SymInt: "as_sym_int", torch.SymFloat: "as_sym_float", torch.SymBool: "as_sym_bool"}[type(value_of(node))]
    return {kind: {"as_name": node.name}}


def _list(items: Sequence[Any]) -> dict[str, Any]:
    if any(_is_tensor(each) for each in items):
        if all(_is_tensor(each) for each in items):
            return {"as_tensors": [{"name": each.name} for each in items]}
        return {
            "as_optional_tensors": [
                {"as_none": True} if each is None else {"as_tensor": {"name": each.name}} for each in items
            ]
        }
    if any(_is_symbol(each) for each in items):
        return {"as_sym_ints": [{"as_name": each.name} if _is_symbol(each) else {"as_int": int(each)} for each in items]}
    if all(isinstance(each, bool) for each in items) and items:
        return {"as_bools": list(items)}
    if all(isinstance(each, int) for each in items):
        return {"as_ints": list(items)}
    if all(isinstance(each, (int, float)) for each in items):
        return {"as_floats": [_number(float(each)) for each in items]}
    if all(isinstance(each, str) for each in items):
        return {"as_strings": list(items)}
    raise NotExpressible(f"a list of {items}")


def _argument(value: Any) -> dict[str, Any]:
    if value is None:
        return {"as_none": True}
    if _is_tensor(value):
        return {"as_tensor": {"name": value.name}}
    if _is_symbol(value):
        return _symbol(value)
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": value}
    if isinstance(value, float):
        return {"as_float": _number(value)}
    if isinstance(value, str):
        return {"as_string": value}
    if isinstance(value, (list, tuple)):
        return _list(value)
    if isinstance(value, torch.dtype):
        if value not in DTYPES:
            raise NotExpressible(f"the dtype {value}")
        return {"as_scalar_type": _SCALAR_TYPES[value]}
    if isinstance(value, torch.device):
        return {"as_device": {"type": value.type, "index": value.index}}
    if isinstance(value, torch.layout):
        return {"as_layout": 7}
    if isinstance(value, torch.memory_format):
        return {"as_memory_format": 1}
    raise NotExpressible(f"an argument that is a {type(value).__name__}")


_OPERATORS = {
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.neg, operator.pow,
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge, operator.and_, operator.or_,
}  # fmt: skip


def target_of(node: torch.fx.Node) -> str:
    """What torch.export calls the function of a node."""
    target = node.target
    if isinstance(target, torch._ops.OpOverload):
        return f"torch.ops.{target.namespace}.{target._schema.name.split('::')[1]}.{target._overloadname}"
    if target in _OPERATORS:
        return f"_operator.{target.__name__}"
    module = getattr(target, "__module__", None) or ""
    if module in ("math", "torch") or module.startswith("torch.fx.experimental.sym_node"):
        return f"{'math' if module == 'math' else 'torch'}.{target.__name__}"
    raise NotExpressible(f"a call of {getattr(target, '__name__', target)}")


def named_arguments(node: torch.fx.Node) -> list[tuple[str, Any]]:
    """The arguments of a node by the names of the op's schema; of other functions, without names."""
    if not isinstance(node.target, torch._ops.OpOverload):
        return [("", each) for each in node.args]
    named = []
    for place, argument in enumerate(node.target._schema.arguments):
        if place < len(node.args):
            named.append((argument.name, node.args[place]))
        elif argument.name in node.kwargs:
            named.append((argument.name, node.kwargs[argument.name]))
    return named


class ExternalNode:
    """A node that PyTorch computes: the names of its results, and what reads its operands."""

    def __init__(self, number: int, reason: str, operands: list[torch.fx.Node]):
        self.number = number  # of the function that computes it
        self.reason = reason
        self.operands = operands


class Writer:
    """Writes one graph.

    `weights` are the placeholders that are parameters, by their names; `external` says of a node which PyTorch computes by
    what function, and is None for all others.
    """

    def __init__(
        self,
        graph: torch.fx.Graph,
        weights: Sequence[str],
        outputs: Sequence[torch.fx.Node],
        external: Mapping[str, ExternalNode],
        permuted: Mapping[str, tuple[int, ...]],
    ):
        self._graph = graph
        self._weights = set(weights)
        self._results = outputs
        self._external = external
        self._permuted = permuted  # placeholders and outputs whose memory has the dimensions in another order
        self._nodes: list[dict[str, Any]] = []
        self._tensors: dict[str, Any] = {}
        self._sizes: dict[str, Any] = {}
        self._symbols: dict[sympy.Expr, str] = {}  # the number that stands for a symbol, or an expression of them
        self._tensor_with: dict[sympy.Symbol, tuple[str, int]] = {}  # an input, and the dimension of this size
        self._inputs: list[dict[str, Any]] = []
        self._input_specs: list[dict[str, Any]] = []
        self.inputs: list[torch.fx.Node] = []  # of the program, in order
        self.constants: list[str] = []
        self.refused: dict[str, str] = {}  # nodes that the format has no words for, and why

    def write(self) -> str:
        for node in self._graph.nodes:
            if node.op == "placeholder":
                self._add_placeholder(node)
        for node in self._graph.nodes:
            if node.op == "placeholder" and isinstance(value_of(node), torch.SymInt):
                self._add_size(node)
        for node in self._graph.nodes:
            if node.op == "get_attr":
                self._add_constant(node)
            elif node.op == "call_function" and node.target is not operator.getitem and not is_copy_back(node):
                try:
                    self._add_call(node)
                except NotExpressible as error:
                    self.refused[node.name] = str(error)
        return json.dumps(
            {
                "schema_version": {"major": 8, "minor": 0},
                "graph_module": {
                    "graph": {
                        "inputs": self._inputs,
                        "outputs": [self._output(node) for node in self._results],
                        "nodes": self._nodes,
                        "tensor_values": self._tensors,
                        "sym_int_values": self._sizes,
                        "sym_bool_values": {},
                        "sym_float_values": {},
                    },
                    "signature": {
                        "input_specs": self._input_specs,
                        "output_specs": [{"user_output": {"arg": self._output(node)}} for node in self._results],
                    },
                },
                "range_constraints": {},
            }
        )

    # --- inputs ---

    def _define_input(self, node: torch.fx.Node, name: str, meta: dict[str, Any]) -> None:
        self._tensors[name] = meta
        self._inputs.append({"as_tensor": {"name": name}})
        if node.name in self._weights:
            self._input_specs.append({"parameter": {"arg": {"name": name}, "parameter_name": node.name}})
        else:
            self._input_specs.append({"user_input": {"arg": {"as_tensor": {"name": name}}}})
            self.inputs.append(node)

    def _add_placeholder(self, node: torch.fx.Node) -> None:
        value = value_of(node)
        if not isinstance(value, torch.Tensor) or not (node.users or node in self._results):
            return
        meta = _meta(value)
        order = self._permuted.get(node.name)
        if order is None:
            self._define_input(node, node.name, meta)
        else:  # the program sees the memory as it is, and transposes it itself
            physical = f"{node.name}_in_memory"
            self._define_input(node, physical, {**meta, "sizes": [meta["sizes"][dim] for dim in order]})
            self._tensors[node.name] = meta
            self._call("torch.ops.aten.permute.default", [physical], node.name, [order.index(i) for i in range(len(order))])
        for dim, size in enumerate(value.shape):
            expression = expression_of(size)
            if expression.is_Symbol and node.name not in self._weights:
                self._tensor_with.setdefault(expression, (node.name, dim))

    def _call(self, target: str, operands: list[str], result: str, dims: Sequence[int]) -> None:
        self._nodes.append(
            {
                "target": target,
                "inputs": [{"name": "self", "arg": {"as_tensor": {"name": operands[0]}}}, {"name": "dims", "arg": {"as_ints": list(dims)}}],
                "outputs": [{"as_tensor": {"name": result}}],
                "metadata": {},
            }
        )

    def _add_size(self, node: torch.fx.Node) -> None:
        """A size that is an input: that of a tensor, where there is one."""
        if not node.users:
            return
        expression = expression_of(value_of(node))
        self._sizes[node.name] = _size(value_of(node))
        if expression in self._tensor_with:
            tensor, dim = self._tensor_with[expression]
            self._nodes.append(
                {
                    "target": "torch.ops.aten.sym_size.int",
                    "inputs": [
                        {"name": "self", "arg": {"as_tensor": {"name": tensor}}},
                        {"name": "dim", "arg": {"as_int": dim}},
                    ],
                    "outputs": [{"as_sym_int": {"as_name": node.name}}],
                    "metadata": {},
                }
            )
        else:
            self._inputs.append({"as_sym_int": {"as_name": node.name}})
            self._input_specs.append({"user_input": {"arg": {"as_sym_int": {"as_name": node.name}}}})
            self.inputs.append(node)
        self._symbols.setdefault(expression, node.name)

    def _add_constant(self, node: torch.fx.Node) -> None:
        value = value_of(node)
        if not isinstance(value, torch.Tensor):  # a graph, that a higher-order op takes
            return
        self._tensors[node.name] = _meta(value)
        self._inputs.append({"as_tensor": {"name": node.name}})
        self._input_specs.append(
            {"tensor_constant": {"arg": {"name": node.name}, "tensor_constant_name": str(node.target)}}
        )
        self.constants.append(str(node.target))

    # --- nodes ---

    def _results_of(self, node: torch.fx.Node) -> list[tuple[str, Any]]:
        """What a node gives, and the names by which others know it."""
        value = value_of(node)
        if not isinstance(value, (list, tuple)):
            return [(node.name, value)]
        names = [f"{node.name}_result_{i}" for i in range(len(value))]
        for user in node.users:
            if user.target is operator.getitem:
                names[user.args[1]] = user.name
        return list(zip(names, value))

    def _result(self, name: str, value: Any) -> dict[str, Any]:
        if value is None:
            return {"as_none": True}
        if isinstance(value, torch.Tensor):
            self._tensors[name] = _meta(value)
            return {"as_tensor": {"name": name}}
        if isinstance(value, torch.SymInt):
            self._sizes[name] = _size(value)
            self._symbols.setdefault(expression_of(value), name)
            return {"as_sym_int": {"as_name": name}}
        if isinstance(value, torch.SymFloat):
            return {"as_sym_float": {"as_name": name}}
        if isinstance(value, torch.SymBool):
            return {"as_sym_bool": {"as_name": name}}
        raise NotExpressible(f"a result that is a {type(value).__name__}")

    def _add_call(self, node: torch.fx.Node) -> None:
        results = self._results_of(node)
        if node.name in self._external:
            return self._add_external(node, self._external[node.name], results)
        if (repeated := self._repeated_getitem(node)) is not None:
            raise NotExpressible(f"result {repeated} is taken twice")
        target = target_of(node)
        if node.target in _WITHOUT_INDICES and all(user.target is operator.getitem and user.args[1] == 0 for user in node.users):
            target, results = _WITHOUT_INDICES[node.target], results[:1]
        described = [self._result(name, value) for name, value in results]
        returns = getattr(node.target, "_schema", None)
        if returns is not None and isinstance(value_of(node), (list, tuple)) and len(returns.returns) == 1:
            described = [{"as_tensors": [each["as_tensor"] for each in described]}]
        self._nodes.append(
            {
                "target": target,
                "name": node.name,
                "inputs": [{"name": name, "arg": _argument(value)} for name, value in named_arguments(node)],
                "outputs": described,
                "metadata": _metadata(node),
            }
        )

    @staticmethod
    def _repeated_getitem(node: torch.fx.Node) -> int | None:
        seen: set[int] = set()
        for user in node.users:
            if user.target is operator.getitem:
                if user.args[1] in seen:
                    return user.args[1]
                seen.add(user.args[1])
        return None

    def _add_external(self, node: torch.fx.Node, external: ExternalNode, results: list[tuple[str, Any]]) -> None:
        tensors = [(name, value) for name, value in results if isinstance(value, torch.Tensor)]
        for _, value in tensors:
            _meta(value)  # or it is refused
        sizes = [self._number_of(expression_of(size)) for _, value in tensors for size in value.shape]
        arguments = {
            "name": {"as_string": str(node.target)},
            "function": {"as_int": external.number},
            "dtypes": {"as_strings": [DTYPES[value.dtype] for _, value in tensors]},
            "ranks": {"as_ints": [value.dim() for _, value in tensors]},
            "sizes": {"as_sym_ints": [{"as_name": each} if isinstance(each, str) else {"as_int": each} for each in sizes]},
        }
        self._nodes.append(
            {
                "target": "tenon.external",
                "name": node.name,
                "inputs": [{"name": name, "arg": argument} for name, argument in arguments.items()]
                + [{"name": "", "arg": _argument(each)} for each in external.operands],
                "outputs": [self._result(name, value) for name, value in tensors],
                "metadata": _metadata(node),
            }
        )

    # --- sizes that no node computes ---

    def _number_of(self, expression: sympy.Expr) -> int | str:
        """An integer, or the name of the number that has this value; -1 where it is dynamic."""
        if expression.is_Integer:
            return int(expression)
        if expression in self._symbols:
            return self._symbols[expression]
        try:
            return self._compute(expression)
        except NotExpressible:
            return -1

    def _compute(self, expression: sympy.Expr) -> int | str:
        if expression.is_Symbol:
            if expression not in self._tensor_with:
                raise NotExpressible(f"the size {expression}")
            tensor, dim = self._tensor_with[expression]
            inputs = [
                {"name": "self", "arg": {"as_tensor": {"name": tensor}}},
                {"name": "dim", "arg": {"as_int": dim}},
            ]
            return self._define_number(expression, "torch.ops.aten.sym_size.int", inputs)
        functions: dict[Any, str] = {
            sympy.Add: "_operator.add", sympy.Mul: "_operator.mul", sympy_functions.FloorDiv: "_operator.floordiv",
            sympy_functions.CleanDiv: "_operator.floordiv", sympy_functions.Mod: "_operator.mod",
            sympy_functions.PythonMod: "_operator.mod", sympy_functions.Max: "torch.sym_max",
            sympy_functions.Min: "torch.sym_min",
        }  # fmt: skip
        target = functions.get(expression.func)
        if target is None or not all(each.is_integer for each in expression.args):
            raise NotExpressible(f"the size {expression}")
        parts = [self._number_of(each) for each in expression.args]
        if -1 in [part for part, each in zip(parts, expression.args) if not each.is_Integer]:
            raise NotExpressible(f"the size {expression}")
        result = parts[0]
        for i, part in enumerate(parts[1:], 1):
            inputs = [
                {"name": "", "arg": {"as_sym_int": {"as_name": each}} if isinstance(each, str) else {"as_int": each}}
                for each in (result, part)
            ]
            known = expression if i == len(parts) - 1 else expression.func(*expression.args[: i + 1])
            result = self._define_number(known, target, inputs)
        return result

    def _define_number(self, expression: sympy.Expr, target: str, inputs: list[dict[str, Any]]) -> str:
        name = f"size_{len(self._symbols)}_of_graph"
        self._symbols[expression] = name
        self._sizes[name] = {"as_expr": {"expr_str": str(expression)}}
        self._nodes.append(
            {"target": target, "inputs": inputs, "outputs": [{"as_sym_int": {"as_name": name}}], "metadata": {}}
        )
        return name

    # --- outputs ---

    def _output(self, node: torch.fx.Node) -> dict[str, Any]:
        value = value_of(node)
        if isinstance(value, _SYMBOLIC):
            return _symbol(node)
        order = self._permuted.get(node.name) if node.op != "placeholder" else None
        if order is None:
            return {"as_tensor": {"name": node.name}}
        physical = f"{node.name}_in_memory"
        if physical not in self._tensors:
            meta = self._tensors[node.name]
            self._tensors[physical] = {**meta, "sizes": [meta["sizes"][dim] for dim in order]}
            self._call("torch.ops.aten.permute.default", [node.name], physical, order)
        return {"as_tensor": {"name": physical}}


def _metadata(node: torch.fx.Node) -> dict[str, str]:
    stack = node.meta.get("nn_module_stack") or (
        (node.meta.get("fwd_nn_module_stack")) if "fwd_nn_module_stack" in node.meta else None
    )
    if not stack:
        return {}
    path, kind = list(stack.values())[-1][:2]
    kind = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
    return {"nn_module_stack": f"m,{_module_path(path)},{kind}"}


def _module_path(path: str) -> str:
    """L['self'].layers[0].conv, as Dynamo writes it, is layers.0.conv."""
    for old in ("L['self'].", "L['self']", "self.", "_modules."):
        path = path.replace(old, "")
    return path.replace("['", ".").replace("']", "").replace("[", ".").replace("]", "").replace(",", "").lstrip(".")
