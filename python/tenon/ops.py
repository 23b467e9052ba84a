"""The ops of Tenon's graphs as functions of nodes: ops.relu(x), ops.softmax(x, axis=-1).

Operands come in the order that `tenon ops NAME` shows, attributes by name. A number, or a tensor of numpy or torch,
beside a node becomes a constant.
"""

from __future__ import annotations

from tenon import _tenon

TYPE_CHECKING = False  # for those who check types it is true; importing typing takes as long as all of Tenon
if TYPE_CHECKING:
    from typing import Any


class Op:
    """One op. Two are equal where they have the same name."""

    def __init__(self, name: str):
        self.name = name
        self.__name__ = name
        self.__doc__ = _tenon.op_doc(name)

    def __call__(self, *operands: Any, **attributes: Any) -> Any:
        return _tenon.create(self.name, *operands, **attributes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Op) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"ops.{self.name}"


_names = set(_tenon.op_names())


def __getattr__(name: str) -> Op:
    if name not in _names and name.rstrip("_") in _names:  # ops.and_, where the name is a keyword
        name = name.rstrip("_")
    if name not in _names:
        raise AttributeError(f"Tenon has no op {name!r}: `tenon ops` lists them")
    op = Op(name)
    globals()[name] = op
    return op


def __dir__() -> list[str]:
    return sorted(_names)


def _binary(name: str, swapped: bool = False) -> Any:
    def operator(self: _tenon.Node, other: Any) -> Any:
        if isinstance(other, _tenon.Node) or _is_constant(other):
            return _tenon.create(name, other, self) if swapped else _tenon.create(name, self, other)
        return NotImplemented

    return operator


def _is_constant(other: Any) -> bool:
    return isinstance(other, (bool, int, float)) or hasattr(other, "__dlpack__") or hasattr(other, "__array__")


# Nodes compute as tensors do. Comparing them with == asks whether they are one node: ops.equal compares elements.
for _symbol, _name in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow", "matmul": "matmul"}.items():
    setattr(_tenon.Node, f"__{_symbol}__", _binary(_name))
    setattr(_tenon.Node, f"__r{_symbol}__", _binary(_name, swapped=True))
for _symbol, _name in {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}.items():
    setattr(_tenon.Node, f"__{_symbol}__", _binary(_name))
setattr(_tenon.Node, "__neg__", lambda self: _tenon.create("neg", self))
