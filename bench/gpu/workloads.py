"""workloads.py — what bench/gpu/run peers times: each workload as a function of PyTorch and as an ONNX model.

PyTorch is imported when a function of it is called, if methods of tensors do not do; models are written with the package onnx.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy


ONNX_NAMES = {"float32": "float", "float16": "float16", "int64": "int64"}


class Input(NamedTuple):
    sizes: tuple[int, ...]
    below: int = 0  # indices in [0, below), of i64; 0: floats
    floats: str = "float32"
    is_weight: bool = False  # which the model has as a constant

    @property
    def dtype(self) -> str:
        return "int64" if self.below else self.floats


class Workload(NamedTuple):
    name: str
    call: Callable[..., Any]
    inputs: dict[str, Input]
    output: tuple[int, ...]
    nodes: str  # in onnx.parser's syntax, from the inputs to y
    constants: dict[str, float | list[int]]
    bytes_moved: int  # that any program must read and write
    flops: int  # of products
    floats: str  # dtype of the output and of constants
    has_images: bool  # of which the first input and the output have their channels last; PyTorch may have them in any order


def define(name: str, call: Callable[..., Any], inputs: dict[str, Input], output: tuple[int, ...], nodes: str,
           constants: dict[str, float | list[int]] | None = None, bytes_moved: int = 0, flops: int = 0,
           floats: str = "float32", has_images: bool = False) -> Workload:
    whole = sum(math.prod(each.sizes) * numpy.dtype(each.dtype).itemsize for each in [*inputs.values(), Input(output, floats=floats)])
    return Workload(name, call, inputs, output, nodes, constants or {}, bytes_moved or whole, flops, floats, has_images)


def write_model(workload: Workload, path: Path) -> None:
    import onnx.numpy_helper
    import onnx.parser

    def port(name: str, sizes: tuple[int, ...], dtype: str) -> str:
        return f"{ONNX_NAMES[dtype]}[{','.join(map(str, sizes))}] {name}"

    def constant(name: str, value: float | list[int]) -> str:
        if isinstance(value, list):
            return f"{name} = Constant <value_ints = {value}> ()"
        number = f"{name}_f32 = Constant <value_float = {value}> ()"  # floats of 16 bits have no other notation than their bits
        return f"{number} {name} = Cast <to = {10 if workload.floats == 'float16' else 1}> ({name}_f32)"

    inputs = ", ".join(port(name, each.sizes, each.dtype) for name, each in workload.inputs.items() if not each.is_weight)
    nodes = "\n".join([constant(*each) for each in workload.constants.items()] + [workload.nodes])
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 23]>
        workload ({inputs}) => ({port("y", workload.output, workload.floats)}) {{ {nodes} }}""")
    arrays = make_inputs(workload)
    model.graph.initializer.extend(onnx.numpy_helper.from_array(arrays[name], name)
                                   for name, each in workload.inputs.items() if each.is_weight)
    onnx.save(model, str(path))


def make_inputs(workload: Workload) -> dict[str, numpy.ndarray]:
    random = numpy.random.default_rng(0)
    return {name: random.integers(0, each.below, each.sizes) if each.below else
            random.standard_normal(each.sizes, numpy.float32).astype(each.dtype) for name, each in workload.inputs.items()}


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


SHORT = {"float32": "f32", "float16": "f16"}


def product(m: int, n: int, k: int, floats: str) -> Workload:
    return define(f"product {m}x{n}x{k}, {SHORT[floats]}", lambda x, w: x @ w, {"x": Input((m, k), floats=floats),
                  "w": Input((k, n), floats=floats)}, (m, n), "y = MatMul(x, w)", flops=2 * m * n * k, floats=floats)


def product_gelu(n: int, floats: str) -> Workload:
    """Weights are scaled, so that GELU sees numbers on both of its branches."""
    def call(x: Any, w: Any, b: Any) -> Any:
        from torch.nn.functional import gelu
        return gelu(x @ w * (1 / 64) + b)
    return define(f"product, bias and GELU, {n}³, {SHORT[floats]}", call,
                  {name: Input(sizes, floats=floats) for name, sizes in {"x": (n, n), "w": (n, n), "b": (n,)}.items()}, (n, n),
                  "p = MatMul(x, w) s = Mul(p, scale) a = Add(s, b) y = Gelu(a)", {"scale": 1 / 64}, flops=2 * n ** 3, floats=floats)


def attention(batch: int, heads: int, queries: int, keys: int, width: int, kv_heads: int = 0, is_causal: bool = False) -> Workload:
    kv_heads = kv_heads or heads

    def call(q: Any, k: Any, v: Any) -> Any:
        from torch.nn.functional import scaled_dot_product_attention
        return scaled_dot_product_attention(q, k, v, is_causal=is_causal, enable_gqa=kv_heads != heads)
    pairs = queries * (keys + 1) // 2 if is_causal else queries * keys
    query, key = (batch, heads, queries, width), (batch, kv_heads, keys, width)
    return define(f"attention {batch}x{heads}x{queries}x{width}" + (f", {kv_heads} kv heads" if kv_heads != heads else "") +
                  (f", {keys} keys" if keys != queries else "") + (", causal" if is_causal else ""), call,
                  {name: Input(sizes, floats="float16") for name, sizes in {"q": query, "k": key, "v": key}.items()}, query,
                  f"y = Attention <is_causal = {int(is_causal)}> (q, k, v)", flops=4 * batch * heads * pairs * width, floats="float16")


def convolution(batch: int, channels: int, filters: int, size: int, window: int, stride: int, groups: int, floats: str) -> Workload:
    pad, out = window // 2, (size + stride - 1) // stride

    def call(x: Any, w: Any) -> Any:
        from torch.nn.functional import conv2d
        return conv2d(x, w, stride=stride, padding=pad, groups=groups)
    kind = f"conv {window}x{window}" + (f"/{stride}" if stride > 1 else "") + (", depthwise" if groups > 1 else "")
    return define(f"{kind}, {batch}x{channels}x{size}² to {filters}, {SHORT[floats]}", call,
                  {"x": Input((batch, size, size, channels), floats=floats),
                   "w": Input((filters, channels // groups, window, window), floats=floats, is_weight=True)}, (batch, out, out, filters),
                  f"""i = Transpose <perm = [0, 3, 1, 2]> (x)
                      c = Conv <pads = [{pad}, {pad}, {pad}, {pad}], strides = [{stride}, {stride}], group = {groups}> (i, w)
                      y = Transpose <perm = [0, 2, 3, 1]> (c)""",
                  flops=2 * batch * filters * out * out * channels // groups * window * window, floats=floats, has_images=True)


LAYERS = [  # channels, filters, size, window, stride, groups: of resnet50, convnext and a U-Net
    (64, 64, 56, 1, 1, 1), (64, 64, 56, 3, 1, 1), (256, 128, 56, 1, 1, 1), (128, 128, 56, 3, 2, 1), (512, 256, 28, 1, 1, 1),
    (256, 256, 14, 3, 1, 1), (1024, 512, 14, 1, 1, 1), (512, 512, 7, 3, 1, 1), (96, 96, 56, 7, 1, 96), (64, 64, 128, 3, 1, 1),
]


def all_products() -> list[Workload]:
    """What tensor cores compute."""
    return [
        *(product_gelu(n, "float16") for n in (4096, 8192)), product(4096, 4096, 4096, "float32"),
        *(product(m, n, k, "float16") for n, k in ((768, 3072), (3072, 768), (4096, 4096), (11008, 4096))
          for m in (1, 16, 128, 512, 2048, 16384)),
        *(attention(8, 16, 2048, 2048, width, is_causal=is_causal) for width in (64, 128) for is_causal in (False, True)),
        attention(1, 32, 16384, 16384, 128, is_causal=True),
        *(attention(1, 32, 1, keys, 128, kv_heads=8) for keys in (4096, 32768, 131072)),
        *(convolution(batch, *layer, floats) for floats in ("float32", "float16") for batch in (1, 32) for layer in LAYERS),
    ]


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
        tiny_kernels(100), *all_products(),
    ]
