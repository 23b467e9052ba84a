"""Ops written in Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tenon import _tenon, ops
from tenon._passes import _with_note
from tenon.errors import UserError

_KINDS = {"bool": "bool", "int": "int", "float": "float", "str": "string", "list[int]": "ints", "list[float]": "floats",
          "list[str]": "strings"}  # fmt: skip


def _kind(op: str, parameter: inspect.Parameter) -> str:
    """What kind of attribute a parameter is: by its annotation, else by its default value."""
    if parameter.annotation is not parameter.empty:
        given = parameter.annotation
        word = given if isinstance(given, str) else given.__name__ if isinstance(given, type) and given.__name__ != "list" else str(given)
    elif isinstance(parameter.default, (list, tuple)) and parameter.default:
        word = f"list[{type(parameter.default[0]).__name__}]"
    else:
        word = type(parameter.default).__name__
    if word not in _KINDS:
        raise UserError(f"{op}: the attribute {parameter.name} is one of {', '.join(_KINDS)}: give it such an annotation or default value")
    return _KINDS[word]


def _signature(op: str, function: Callable[..., Any]) -> tuple[list[tuple[str, str]], list[tuple[str, str, Any]]]:
    """The operands of an op, each with a mark, and its attributes, each with its kind and default value."""
    operands: list[tuple[str, str]] = []
    attributes: list[tuple[str, str, Any]] = []
    for each in inspect.signature(function).parameters.values():
        default = None if each.default is each.empty else each.default
        if each.kind is each.KEYWORD_ONLY:
            attributes.append((each.name, _kind(op, each), default))
        elif each.kind is each.VAR_POSITIONAL:
            operands.append((each.name, "..."))
        elif each.kind is each.VAR_KEYWORD:
            raise UserError(f"{op}: attributes are named, one by one, and not **{each.name}")
        elif default is not None:
            raise UserError(f"{op}: the operand {each.name} may be left out where its default is None; attributes come after a *")
        else:
            operands.append((each.name, "" if each.default is each.empty else "?"))
    if not operands:
        raise UserError(f"{op}: an op takes at least one operand")
    return operands, attributes


def add_op(
    name: str,
    *,
    eval: Callable[..., Any] | None = None,
    types: Callable[..., Any] | None = None,
    decompose: Callable[..., Any] | None = None,
    onnx: str | None = None,
    torch: str | None = None,
) -> ops.Op:
    """Adds an op, for all that this process reads, compiles and writes from then on, and returns it: ops.NAME.

    It is written as functions that take the operands in order (one whose default is None may be left out, *xs takes any
    number), and attributes by name, after a *. `eval` computes the results of numpy arrays, copies that it may keep.
    `types` gives the types of the results, as text such as "f32[n,8]", of those of the operands, which have .dtype and
    .shape. `decompose` computes the results of nodes, by other ops. With `decompose` the op is compiled by that; else `eval`
    runs on the host. Either `decompose` is there, or `eval` and `types`.

    `onnx` is what files call it, such as com.example.FusedLinearReLU, and `torch` the operator of PyTorch's that it is, such
    as example::fused_linear_relu. Adding an op of the same name and parameters again replaces its functions.
    """
    if decompose is None and (eval is None or types is None):
        raise UserError(f"{name}: an op has a function decompose, or functions eval and types")
    functions = {"types": types, "eval": eval, "decompose": decompose}
    signatures = {word: _signature(name, function) for word, function in functions.items() if function is not None}
    main = "eval" if eval is not None else "decompose"
    shapes = {word: ([mark for _, mark in operands], attributes) for word, (operands, attributes) in signatures.items()}
    for word, shape in shapes.items():
        if shape != shapes[main]:
            raise UserError(f"{name}: {word} takes other parameters than {main}")
    if not name.isidentifier() or (name in vars(ops) and name not in ops._names):
        raise UserError(f"{name!r} cannot be the name of an op of tenon.ops")
    domain, _, op_type = (onnx or "").rpartition(".")
    if onnx is not None and not (domain and op_type):
        raise UserError(f"{name}: an op is called DOMAIN.NAME in ONNX files, but not {onnx}")
    noted = [function and _with_note(function, f"in {word} of the op {name}") for word, function in functions.items()]
    documented = next((function.__doc__ for function in (eval, decompose, types) if function and function.__doc__), None)
    doc = inspect.cleandoc(documented).splitlines()[0] if documented else "an op of this program"
    _tenon.add_op(name, doc, *signatures[main], noted, (domain, op_type), torch or "")
    ops._names.add(name)
    return getattr(ops, name)
