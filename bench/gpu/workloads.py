"""workloads.py — what bench/gpu/run peers times: each workload as a function of PyTorch and as an ONNX model.

Functions call methods of tensors alone, so that this needs no PyTorch; models are written with the package onnx.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy


class Input(NamedTuple):
    sizes: tuple[int, ...]
    below: int = 0  # indices in [0, below), of i64; 0: floats


class Workload(NamedTuple):
    name: str
    call: Callable[..., Any]
    inputs: dict[str, Input]
    output: tuple[int, ...]
    nodes: str  # in onnx.parser's syntax, from the inputs to y
    constants: dict[str, float | list[int]]
    bytes_moved: int  # that any program must read and write


def define(name: str, call: Callable[..., Any], inputs: dict[str, Input], output: tuple[int, ...], nodes: str,
           constants: dict[str, float | list[int]] | None = None, bytes_moved: int = 0) -> Workload:
    whole = sum(math.prod(each.sizes) * (8 if each.below else 4) for each in inputs.values()) + 4 * math.prod(output)
    return Workload(name, call, inputs, output, nodes, constants or {}, bytes_moved or whole)


def write_model(workload: Workload, path: Path) -> None:
    import onnx.parser

    def port(name: str, sizes: tuple[int, ...], dtype: str) -> str:
        return f"{dtype}[{','.join(map(str, sizes))}] {name}"

    def constant(name: str, value: float | list[int]) -> str:
        kind = "value_ints" if isinstance(value, list) else "value_float"
        return f"{name} = Constant <{kind} = {value}> ()"

    inputs = ", ".join(port(name, each.sizes, "int64" if each.below else "float") for name, each in workload.inputs.items())
    nodes = "\n".join([constant(*each) for each in workload.constants.items()] + [workload.nodes])
    onnx.save(onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 18]>
        workload ({inputs}) => ({port("y", workload.output, "float")}) {{ {nodes} }}"""), str(path))


def make_inputs(workload: Workload) -> dict[str, numpy.ndarray]:
    random = numpy.random.default_rng(0)
    return {name: random.integers(0, each.below, each.sizes) if each.below else random.standard_normal(each.sizes, numpy.float32)
            for name, each in workload.inputs.items()}


def chain5(n: int) -> Workload:
    return define(f"chain of 5, {n}²", lambda x: ((x * 2 + 1).relu() * 0.5).sigmoid(), {"x": Input((n, n))}, (n, n),
                  "a = Mul(x, two) b = Add(a, one) c = Relu(b) d = Mul(c, half) y = Sigmoid(d)",
                  {"two": 2.0, "one": 1.0, "half": 0.5})


def gelu(n: int) -> Workload:
    return define(f"GELU in 8 ops, {n}²", lambda x: x * 0.5 * (((x ** 3 * 0.044715 + x) * 0.7978845608).tanh() + 1),
                  {"x": Input((n, n))}, (n, n),
                  """a = Pow(x, three) b = Mul(a, cubic) c = Add(b, x) d = Mul(c, scale) e = Tanh(d) f = Add(e, one)
                     g = Mul(x, half) y = Mul(g, f)""",
                  {"three": 3.0, "cubic": 0.044715, "scale": 0.7978845608, "one": 1.0, "half": 0.5})


def softmax(rows: int, columns: int, name: str = "") -> Workload:
    def call(x: Any) -> Any:
        e = (x - x.amax(-1, keepdim=True)).exp()
        return e / e.sum(-1, keepdim=True)
    return define(name or f"softmax in ops, {rows}²", call, {"x": Input((rows, columns))}, (rows, columns),
                  "m = ReduceMax(x, last) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, last) y = Div(e, s)", {"last": [-1]})


def layer_norm(n: int) -> Workload:
    def call(x: Any, g: Any, b: Any) -> Any:
        d = x - x.mean(-1, keepdim=True)
        return d / ((d * d).mean(-1, keepdim=True) + 1e-5).sqrt() * g + b
    return define(f"layer norm in ops, {n}²", call, {"x": Input((n, n)), "g": Input((n,)), "b": Input((n,))}, (n, n),
                  """m = ReduceMean(x, last) d = Sub(x, m) d2 = Mul(d, d) v = ReduceMean(d2, last) ve = Add(v, epsilon)
                     s = Sqrt(ve) z = Div(d, s) zg = Mul(z, g) y = Add(zg, b)""", {"last": [-1], "epsilon": 1e-5})


def rms_norm(n: int) -> Workload:
    return define(f"RMS norm in ops, {n}²", lambda x, g: x / ((x * x).mean(-1, keepdim=True) + 1e-5).sqrt() * g,
                  {"x": Input((n, n)), "g": Input((n,))}, (n, n),
                  "x2 = Mul(x, x) v = ReduceMean(x2, last) ve = Add(v, epsilon) s = Sqrt(ve) z = Div(x, s) y = Mul(z, g)",
                  {"last": [-1], "epsilon": 1e-5})


def transpose(sizes: tuple[int, ...], permutation: tuple[int, ...]) -> Workload:
    return define(f"transpose {'x'.join(map(str, sizes))} by {''.join(map(str, permutation))}",
                  lambda x: x.permute(permutation).contiguous(), {"x": Input(sizes)}, tuple(sizes[axis] for axis in permutation),
                  f"y = Transpose <perm = {list(permutation)}> (x)")


def column_sums(rows: int, columns: int) -> Workload:
    return define(f"column sums {rows}x{columns}", lambda x: x.sum(0), {"x": Input((rows, columns))}, (columns,),
                  "y = ReduceSum <keepdims = 0> (x, first)", {"first": [0]})


def embedding(words: int, width: int, count: int) -> Workload:
    return define(f"embedding {count} of {words}x{width}", lambda table, ids: table.index_select(0, ids),
                  {"table": Input((words, width)), "ids": Input((count,), below=words)}, (count, width), "y = Gather(table, ids)",
                  bytes_moved=8 * count + 8 * count * width)


def pointwise(size: int) -> Workload:
    unit = next((f"{size >> shift} {name}" for shift, name in ((30, "GiB"), (20, "MiB")) if size >> shift), f"{size >> 10} KiB")
    return define(f"2x + 1, {unit}", lambda x: x * 2 + 1, {"x": Input((size // 4,))}, (size // 4,),
                  "a = Mul(x, two) y = Add(a, one)", {"two": 2.0, "one": 1.0})


def tiny_kernels(count: int, n: int = 64) -> Workload:
    """Means of rows and of columns in turn: each needs all of the one before, so that no two are one kernel."""
    def call(x: Any) -> Any:
        for i in range(count):
            x = x * 0.5 + x.mean(1 - i % 2, keepdim=True) * 0.5
        return x
    nodes = "".join(f"""m{i} = ReduceMean(x{i}, {("rows", "columns")[i % 2]}) h{i} = Mul(x{i}, half) g{i} = Mul(m{i}, half)
                        x{i + 1} = Add(h{i}, g{i}) """ for i in range(count))
    return define(f"{count} tiny kernels", call, {"x": Input((n, n))}, (n, n),
                  f"x0 = Identity(x) {nodes} y = Identity(x{count})", {"rows": [1], "columns": [0], "half": 0.5})


def all_workloads() -> list[Workload]:
    elements = 1 << 24
    return [
        *(make(n) for n in (4096, 16384) for make in (chain5, gelu, lambda n: softmax(n, n), layer_norm, rms_norm)),
        *(softmax(elements // columns, columns, f"softmax, rows of {columns}") for columns in (1 << shift for shift in range(8, 19, 2))),
        transpose((4096, 4096), (1, 0)), transpose((64, 512, 512), (0, 2, 1)), transpose((8, 2048, 16, 64), (0, 2, 1, 3)),
        column_sums(4096, 4096), column_sums(65536, 256), column_sums(1 << 20, 16),
        embedding(32000, 1024, 16384), embedding(100000, 64, 1 << 18),
        *(pointwise(1 << shift) for shift in range(10, 31, 2)),
        define("one-element add", lambda x, z: x + z, {"x": Input((1,)), "z": Input((1,))}, (1,), "y = Add(x, z)"),
        tiny_kernels(100),
    ]
