"""Passes over torch.fx graphs through tenon.fx, and models of Tenon's as torch.fx code."""

import copy
import importlib
import math
import operator
import pathlib
import pickle
import re
import time

import numpy
import onnx
import pytest
from onnx import helper

import tenon
from tenon import ops

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tenon.fx  # noqa: E402
from tenon.fx import GraphModule, Interpreter, Node, TracedModule, Tracer, Transformer, replace_pattern, symbolic_trace  # noqa: E402
from tenon.fx.experimental.const_fold import split_const_subgraphs  # noqa: E402
from tenon.fx.passes.shape_prop import ShapeProp  # noqa: E402
from tenon.fx.subgraph_rewriter import replace_pattern as rewrite  # noqa: E402


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


# --- models and passes over them ---


class Stem(nn.Module):
    """Two convolutions with normalisations, the second with a skip connection and a group for each channel."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(6)
        self.second = nn.Conv2d(6, 6, 3, padding=1, groups=6)
        self.renorm = nn.BatchNorm2d(6)
        for norm in (self.norm, self.renorm):
            norm.running_mean.normal_()
            norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        h = torch.relu(self.norm(self.first(x)))
        return torch.relu(self.renorm(self.second(h)) + h)


class Wasteful(nn.Module):
    def forward(self, x):
        scale = torch.tensor(3.0) * torch.tensor(0.5)
        a, b = torch.tanh(x), torch.tanh(x)
        torch.exp(x)
        return (a * 1.0 + b) * scale


class Gelu(nn.Module):
    def forward(self, x):
        return x * 0.5 * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.act = nn.ReLU()

    def forward(self, x):
        return self.down(self.act(self.up(x))) + x


def fold_norms(gm, scaled=lambda weight: weight):
    """A normalisation that follows a convolution, and no other, goes into its weights."""
    modules = dict(gm.named_modules())
    for node in list(gm.graph.nodes):
        if node.op != "call_module" or not isinstance(modules[node.target], nn.BatchNorm2d):
            continue
        source = node.args[0]
        if source.op != "call_module" or not isinstance(modules[source.target], nn.Conv2d) or len(source.users) > 1:
            continue
        conv, norm = modules[source.target], modules[node.target]
        folded = copy.deepcopy(conv)
        factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        bias = torch.zeros_like(norm.running_mean) if conv.bias is None else conv.bias
        folded.weight = nn.Parameter(scaled(conv.weight * factor[:, None, None, None]))
        folded.bias = nn.Parameter((bias - norm.running_mean) * factor + norm.bias)
        name = source.target + "_folded"
        gm.add_submodule(name, folded)
        with gm.graph.inserting_after(source):
            new = gm.graph.call_module(name, source.args)
        node.replace_all_uses_with(new)
        gm.graph.erase_node(node)
        gm.graph.erase_node(source)
    gm.delete_all_unused_submodules()
    gm.graph.lint()
    gm.recompile()


def share_calls(gm):
    """Common subexpressions, told apart by the nodes that they take."""
    seen = {}
    for node in gm.graph.nodes:
        if node.op == "call_function":
            key = node.target, node.args, tuple(node.kwargs.items())
            node.replace_all_uses_with(seen[key]) if key in seen else seen.setdefault(key, node)
    gm.graph.eliminate_dead_code()
    gm.recompile()


def drop_identities(gm):
    for node in list(gm.graph.nodes):
        if node.target is operator.mul and 1.0 in node.args:
            (other,) = (each for each in node.args if isinstance(each, Node))
            node.replace_all_uses_with(other)
    gm.graph.eliminate_dead_code()
    gm.recompile()


class LinearRelu(nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.linear = linear

    def forward(self, x):
        return torch.relu(self.linear(x))


def fuse_relus(gm):
    modules = dict(gm.named_modules())
    for node in list(gm.graph.nodes):
        if node.op == "call_module" and isinstance(modules[node.target], nn.ReLU):
            (linear,) = node.all_input_nodes
            name = f"fused_{linear.target}"
            gm.add_submodule(name, LinearRelu(modules[linear.target]))
            with gm.graph.inserting_before(node):
                node.replace_all_uses_with(gm.graph.call_module(name, linear.args))
            gm.graph.erase_node(node)
            gm.graph.erase_node(linear)
    gm.recompile()
    return gm


def one_gelu(gm):
    def pattern(x):
        return x * 0.5 * (1.0 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))

    assert len(replace_pattern(gm, pattern, lambda x: nn.functional.gelu(x, approximate="tanh"))) == 1


ALL = {"numerical": True, "gradient": True, "lint": True, "parameters": True}


@pytest.mark.parametrize("model, change, shape, nodes", [
    (Stem, fold_norms, (2, 3, 8, 8), 7), (Wasteful, share_calls, (4, 5), 7), (Wasteful, drop_identities, (4, 5), 7),
    (Gelu, one_gelu, (4, 5), 3), (Mlp, fuse_relus, (4, 8), 5), (Mlp, lambda gm: None, (4, 8), 6),
])
def test_passes_are_verified(model, change, shape, nodes):
    module = model().eval()
    checks = tenon.verify_pass(module, change, shape, samples=1)
    assert checks == ALL and checks and "numbers" in str(checks) and checks._repr_html_().startswith("<pre>")
    assert tenon.verify_pass(module, change, torch.randn(shape), samples=1)
    assert tenon.verify_pass(symbolic_trace(module), change, [torch.randn(shape)], samples=1)
    traced = symbolic_trace(module)
    result = change(traced) or traced
    assert len(result.graph.nodes) == nodes
    x = torch.randn(shape)
    torch.testing.assert_close(result(x), module(x), rtol=1e-4, atol=1e-5)
    assert isinstance(result, TracedModule) and result.verify_against(module, (x,), samples=1)


def test_passes_that_are_wrong_are_caught():
    module = Stem().eval()
    shape = (1, 3, 6, 6)
    wrong = tenon.verify_pass(module, lambda gm: fold_norms(gm, lambda weight: weight * 1.01), shape, samples=1)
    assert not wrong and not wrong["numerical"] and wrong["lint"] and "FAILED" in str(wrong)

    def misplace(gm):
        relu = gm.graph.find_nodes(op="call_function", target=torch.relu)[0]
        relu.append(relu.args[0])  # its input comes after it

    misplaced = tenon.verify_pass(module, misplace, shape)
    assert not misplaced["lint"] and "not well formed" in str(misplaced)

    def widen(gm):
        gm.second = nn.Conv2d(6, 5, 3)
        gm.recompile()

    broken = tenon.verify_pass(module, widen, shape)
    assert broken == {**ALL, "numerical": False, "gradient": False} and "no longer runs" in str(broken)

    class Stopped(nn.Module):
        def forward(self, x):
            return torch.sin(x)

    def grow(gm):
        gm.register_buffer("table", torch.arange(20.0))
        (output,) = gm.graph.find_nodes(op="output")
        with gm.graph.inserting_before(output):
            product = gm.graph.call_function(torch.mul, (output.args[0], gm.graph.get_attr("table")))
            nothing = gm.graph.call_function(torch.sub, (product, product))
            output.args = (gm.graph.call_function(torch.add, (output.args[0], nothing)),)
        gm.recompile()

    grown = tenon.verify_pass(Stopped(), grow, (20,), samples=1)
    assert grown["numerical"] and not grown["parameters"]
    never = tenon.verify_pass(module, fold_norms, shape, samples=1, gradients="never")
    assert never and never == {**ALL, "gradient": None}
    with pytest.raises(tenon.UserError, match="example inputs"):
        tenon.verify_pass(module, fold_norms)
    assert isinstance(dict(module.named_modules())["norm"], nn.BatchNorm2d)  # the passes had copies


def test_passes_over_models_of_tenon_are_verified():
    model = tenon.trace(lambda x: ops.relu(ops.relu(x)) * 2.0, "f32[n,4]")

    def once(graph):
        for node in graph.nodes:
            if node.target == ops.relu and node.args[0].target == ops.relu:
                node.replace_all_uses_with(node.args[0])
        graph.eliminate_dead_code()

    assert tenon.verify_pass(model, once) == ALL
    assert tenon.verify_pass(model, once, [numpy.ones((2, 4), dtype="f")], samples=1) == ALL
    assert tenon.verify_pass(model, lambda graph: model.optimize()) == ALL
    rule = tenon.Rule("relu-once", pattern=lambda x: ops.relu(ops.relu(x)), replacement=ops.relu, numerics="bit-exact")
    assert tenon.verify_pass(model, rule)

    def drop(graph):
        (node, *_) = graph.find_nodes(op="call_function", target=ops.add)
        node.replace_all_uses_with(node.args[0])

    dropped = tenon.verify_pass("builtin:unoptimized", drop)
    assert not dropped and not dropped["numerical"] and dropped["lint"]


def test_benchmarks_have_both_ways_to_run():
    module = Mlp()
    timings = tenon.benchmark(module, fuse_relus(symbolic_trace(module)), (4, 8), seconds=0.05)
    assert list(timings.median_ms) == [
        "original, PyTorch", "transformed, PyTorch", "original, Tenon", "transformed, Tenon"]
    assert timings.counts["parameters of the original"] == sum(each.numel() for each in module.parameters())
    assert timings.speed_up("original, PyTorch") == 1 and min(timings.repeats.values()) >= 5
    assert "speed-up" in str(timings) and timings.to_dict()["p95_ms"].keys() == timings.median_ms.keys()
    model = tenon.load("builtin:unoptimized")
    assert list(tenon.benchmark(model, model.optimize(), [(4, 4)], seconds=0.02).median_ms) == [
        "original, Tenon", "transformed, Tenon"]


# --- tenon.fx ---


def test_names_are_those_of_torch_fx():
    import torch.fx.passes.shape_prop

    assert ShapeProp is torch.fx.passes.shape_prop.ShapeProp and rewrite is replace_pattern
    assert importlib.import_module("tenon.fx.passes.shape_prop") is torch.fx.passes.shape_prop
    assert torch.fx.passes.shape_prop.__spec__.name == "torch.fx.passes.shape_prop"
    for name in torch.fx.__all__:
        assert getattr(tenon.fx, name) is not None and name in dir(tenon.fx)
    assert tenon.fx.subgraph_rewriter is torch.fx.subgraph_rewriter and tenon.fx.Proxy is torch.fx.Proxy
    with pytest.raises(AttributeError, match="nothing"):
        tenon.fx.nothing
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tenon.fx.passes.nothing")


def test_traced_modules_stay_what_they_are():
    traced = symbolic_trace(Mlp())
    assert isinstance(traced, GraphModule) and isinstance(traced, TracedModule)
    x = torch.randn(2, 8)
    for copied in (copy.copy(traced), copy.deepcopy(traced), pickle.loads(pickle.dumps(traced)), Transformer(traced).transform()):
        assert isinstance(copied, TracedModule)
        torch.testing.assert_close(copied(x), traced(x))
    assert TracedModule.of(traced) is traced
    plain = torch.fx.symbolic_trace(Mlp())
    assert not isinstance(plain, TracedModule) and isinstance(TracedModule.of(plain), TracedModule)
    assert "<td>call_module</td>" in traced._repr_html_()


def test_traced_modules_are_measured_and_reported(tmp_path):
    traced = symbolic_trace(Mlp())
    x = torch.randn(2, 8)
    assert list(traced.bench(x, seconds=0.02).median_ms) == ["original, PyTorch", "original, Tenon"]
    report = traced.report(x, seconds=0.02)
    assert "Mlp" in repr(report)
    report.save(tmp_path / "report.html")


def test_modules_of_fx_are_models():
    plain = torch.fx.symbolic_trace(Mlp())
    x = torch.randn(3, 8)
    model = tenon.load(plain, (x,), dynamic=({0: "batch"},))
    assert model.inputs[0].shape == ("batch", 8) and model.verify(samples=1)
    torch.testing.assert_close(tenon.compile(plain, (x,))(x), plain(x))
    with pytest.raises(tenon.UserError, match="example inputs"):
        tenon.load(plain)
    with pytest.raises(tenon.UserError, match="torch.nn.Module"):
        tenon.load("builtin:tiny", (x,))


def test_shapes_constants_and_times():
    traced = symbolic_trace(Mlp())
    ShapeProp(traced).propagate(torch.randn(3, 8))
    assert [tuple(node.meta["tensor_meta"].shape) for node in traced.graph.nodes][1] == (3, 16)

    folded = split_const_subgraphs(symbolic_trace(Wasteful()))
    folded.run_folding()
    assert tenon.load(folded, (torch.randn(4),)).verify_against(tenon.load(Wasteful(), (torch.randn(4),)))

    class Timed(Interpreter):
        def __init__(self, module):
            super().__init__(module)
            self.times = {}

        def run_node(self, node):
            start = time.perf_counter()
            result = super().run_node(node)
            self.times[node.name] = time.perf_counter() - start
            return result

    timed = Timed(traced)
    x = torch.randn(2, 8)
    torch.testing.assert_close(timed.run(x), traced(x))
    assert set(timed.times) == {node.name for node in traced.graph.nodes}

    class Leaves(Tracer):
        def is_leaf_module(self, module, name):
            return False

    graph = Leaves().trace(Mlp())
    assert any(node.target is nn.functional.linear for node in graph.nodes)


# --- to_fx ---


def results(given):
    return given if isinstance(given, tuple) else (given,)


def inputs_for(model, sizes):
    generator = torch.Generator().manual_seed(0)
    dtypes = {"f32": torch.float32, "i64": torch.int64, "bool": torch.bool}
    return tuple(torch.randn(port.shape, generator=generator).mul(3).to(dtypes[port.dtype])
                 for port in model.bind(sizes).inputs)


def check_round_trip(model, inputs, back=True):
    """The code computes what the model does, and so does what comes back of it."""
    gm = model.to_fx()
    want = results(model.compile()(*inputs))
    for got in [gm(*inputs)] + ([tenon.compile(gm, inputs)(*inputs)] if back else []):
        assert len(results(got)) == len(want)
        for a, b in zip(results(got), want):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    return gm


BUILT_IN = [
    "tiny", "attention", "attention_any_length", "chain5_any_size", "cond", "conv_bn_nobias", "conv_transpose_bn",
    "depthwise_conv_bn", "gelu_approx", "linear_layernorm", "matmul_bias_relu", "mha_causal", "mlp_softmax",
    "multi_conv_bn", "my_module", "resnet_block", "scan", "unoptimized", "while_loop", "with_constants",
]


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_models_are_code(name):
    model = tenon.load(f"builtin:{name}")
    inputs = inputs_for(model, {each: 5 for each in model.dimensions})
    gm = check_round_trip(model, inputs)
    gm.graph.lint()
    assert isinstance(gm, TracedModule) and "forward" in gm.code


MODELS = sorted((pathlib.Path(__file__).parent.parent / "data").glob("**/*.pt2"))


def onnx_model(nodes, inputs, outputs, weights=()):
    def ports(described):
        return [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in described]

    return helper.make_model(helper.make_graph(nodes, "g", ports(inputs), ports(outputs), list(weights)),
                             opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


F, I = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def test_an_onnx_file_becomes_code_and_comes_back(tmp_path):
    weight = helper.make_tensor("layer.0/w:0", F, [3, 2], [1, 2, 3, 4, 5, 6])
    model = onnx_model(
        [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Gather", ["s", "zero"], ["n"]),
         helper.make_node("Unsqueeze", ["n", "axis"], ["m"]), helper.make_node("Concat", ["m", "rest"], ["to"], axis=0),
         helper.make_node("Reshape", ["x", "to"], ["y"]), helper.make_node("MatMul", ["y", "layer.0/w:0"], ["z"]),
         helper.make_node("Relu", ["z"], ["r"])],
        [("x", F, ["n", 1, 3])], [("r", F, ["n", 2]), ("s", I, [3])],
        [weight, helper.make_tensor("zero", I, [], [0]), helper.make_tensor("axis", I, [1], [0]),
         helper.make_tensor("rest", I, [1], [3])])
    onnx.save(model, tmp_path / "model.onnx")
    loaded = tenon.load(tmp_path / "model.onnx")
    gm = check_round_trip(loaded, (torch.randn(4, 1, 3),))
    assert "x.size(0)" in gm.code and gm._get_name() == "Model"
    assert [tuple(each.shape) for _, each in gm.named_parameters()] == [(3, 2)]
    for n in (1, 7):
        x = torch.randn(n, 1, 3)
        torch.testing.assert_close(gm(x)[0], loaded.compile()(x)[0])
    # It is edited as any other.
    for node in gm.graph.find_nodes(op="call_function", target=torch.relu):
        node.target = torch.sigmoid
    gm.recompile()
    x = torch.randn(2, 1, 3)
    torch.testing.assert_close(tenon.compile(gm, (x,))(x)[0], gm(x)[0])
    assert gm(x)[0].min() > 0
    again = tenon.load(gm, (x,), dynamic=({0: "n"},))
    assert again.inputs[0].shape == ("n", 1, 3)


def test_symbolic_sizes_stay_symbolic():
    def flattened(x):
        parts = ops.reshape(x, [-1, 2, 4])
        return ops.reshape(parts, ops.concat([ops.shape(x), [1]], axis=0)) + 1.0

    model = tenon.trace(flattened, "f32[n,4]")
    gm = model.to_fx()
    for n in (2, 6):
        x = torch.randn(n, 4)
        torch.testing.assert_close(gm(x), x[..., None] + 1)
    assert "size(0)" in gm.code and "//" in gm.code


@pytest.mark.parametrize("function, types", [
    (lambda x: ops.clip(x), ["f32[4]"]),
    (lambda x, i: ops.gather_elements(x, i, axis=1), ["f32[3,5]", "i64[3,2]"]),
    (lambda x, i, u: ops.scatter_elements(x, i, u, axis=1), ["f32[3,5]", "i64[3,1]", "f32[3,1]"]),
    (lambda x: ops.reduce_sum(x, axes=[]), ["f32[3,5]"]),
    (lambda x: ops.reduce_sum(x, axes=[1]), ["i32[3,5]"]),
    (lambda x: ops.cumulative_sum(x, axis=0), ["i32[3,5]"]),
    (lambda x, y: ops.pow(x, y), ["i64[4]", "f32[4]"]),
    (lambda x: ops.top_k(x, numpy.array([2]), axis=1), ["f32[3,5]"]),
    (lambda x: ops.split(x, numpy.array([2, 3]), axis=1), ["f32[3,5]"]),
    (lambda x: ops.where(ops.greater(x, 0.0), 1.0, 2.0), ["f32[4]"]),
    (lambda x: ops.shape(x), ["f32[n,3]"]),
    (lambda a, b: ops.einsum([a, b], equation="bij, bkj -> bik"), ["f32[2,3,4]", "f32[2,5,4]"]),
    (lambda a, b: ops.einsum([a, b], equation="...i,i"), ["f32[2,3,4]", "f32[4]"]),
    (lambda x: (ops.cast(x, to="i64"), numpy.array([1, 2]) + ops.cast(x, to="i64")), ["f32[2]"]),
])
def test_calls_are_exact(function, types):
    model = tenon.trace(function, *types)
    generator = torch.Generator().manual_seed(0)
    inputs = []
    for port in model.bind({each: 4 for each in model.dimensions}).inputs:
        integers = torch.randint(-1, 2, port.shape, generator=generator)
        inputs.append({"f32": torch.randn(port.shape, generator=generator), "i64": integers, "i32": integers.int()}[port.dtype])
    if function.__code__.co_varnames == ("x", "y"):  # a power
        inputs = [each.abs() + 1 for each in inputs]
    got, want = results(model.to_fx()(*inputs)), results(model.compile()(*inputs))
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("op, gates", [("gru", 3), ("lstm", 4), ("rnn", 1)])
@pytest.mark.parametrize("direction, count", [("forward", 1), ("reverse", 1), ("bidirectional", 2)])
def test_recurrent_layers_are_code(op, gates, direction, count):
    how = {"direction": direction, **({"reset_after": True} if op == "gru" else {})}

    def layers(x, w, r, bias, h):
        given = getattr(ops, op)(x, w, r, bias, initial_h=h, **how)
        return (*given, *getattr(ops, op)(x, w, r, **how))

    model = tenon.trace(layers, "f32[t,2,3]", f"f32[{count},{gates * 5},3]", f"f32[{count},{gates * 5},5]", f"f32[{count},{gates * 10}]",
                        f"f32[{count},2,5]")
    check_round_trip(model, inputs_for(model, {"t": 4}))


def test_recurrent_layers_that_torch_does_not_have_are_named():
    for how in ({}, {"reset_after": True, "activations": ["relu", "tanh"]}, {"reset_after": True, "clip": 1.0}):
        model = tenon.trace(lambda x, w, r: ops.gru(x, w, r, **how), "f32[4,2,3]", "f32[1,15,3]", "f32[1,15,5]")
        with pytest.raises(tenon.UnsupportedError, match=r"torch has no calls for what these nodes compute: .*\(gru\)"):
            model.to_fx()


def test_what_torch_has_no_calls_for_is_named():
    model = onnx_model(
        [helper.make_node("Hardmax", ["x"], ["h"], name="hard"), helper.make_node("Relu", ["h"], ["r"]),
         helper.make_node("Hardmax", ["r"], ["y"], name="harder")],
        [("x", F, [2, 3])], [("y", F, [2, 3])])
    with pytest.raises(tenon.UnsupportedError, match=re.escape('node "hard" (hardmax); node "harder" (hardmax)')):
        tenon.load(model).to_fx()


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
def test_archives_of_torch_are_code(path):
    try:
        model = tenon.load(path)
        gm = model.to_fx()
    except tenon.UnsupportedError:
        pytest.skip("it has ops that torch has no calls for")
    sizes = {each: 5 for each in model.dimensions}
    if any(port.dtype not in ("f32", "i64", "bool") for port in model.inputs):
        pytest.skip("its inputs are of other dtypes")
    inputs = inputs_for(model, sizes)
    for a, b in zip(results(gm(*inputs)), results(model.compile()(*inputs)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


# --- modules ---


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(4, 4, 2, stride=2, groups=2)
        self.stem = nn.Sequential(nn.Conv2d(4, 6, 3, padding=1, dilation=1, bias=False), nn.BatchNorm2d(6), nn.ReLU())
        self.norm, self.table = nn.LayerNorm(6), nn.Embedding(9, 6)
        self.groups, self.linear = nn.GroupNorm(3, 6), nn.Linear(6, 6)
        self.scale = nn.Parameter(torch.ones(6))

    def forward(self, x, i):
        h = self.groups(self.stem(self.up(x))).mean((2, 3))
        return self.norm(self.linear(h)) * self.scale + self.table(i)


def test_layers_are_modules_again():
    layers = Layers().eval()
    inputs = torch.randn(2, 4, 5, 5), torch.tensor([1, 8])
    gm = tenon.load(layers, inputs).to_fx(modules=True)
    torch.testing.assert_close(gm(*inputs), layers(*inputs), rtol=1e-4, atol=1e-5)
    found = {node.target: type(gm.get_submodule(node.target)) for node in gm.graph.nodes if node.op == "call_module"}
    assert found == {"up": nn.ConvTranspose2d, "stem.0": nn.Conv2d, "stem.1": nn.BatchNorm2d, "norm": nn.LayerNorm,
                     "table": nn.Embedding, "groups": nn.GroupNorm, "linear": nn.Linear}
    assert gm.get_submodule("stem.0").bias is None
    kept = set(gm.state_dict()) | {"stem.1.num_batches_tracked"}
    assert kept == set(layers.state_dict())
    torch.testing.assert_close(tenon.compile(gm, inputs)(*inputs), layers(*inputs), rtol=1e-4, atol=1e-5)


def test_passes_that_look_for_modules_work_on_files(tmp_path):
    stem = Stem().eval()
    x = torch.randn(1, 3, 6, 6)
    tenon.load(stem, (x,)).save(tmp_path / "stem.onnx")
    for model in (tenon.load(tmp_path / "stem.onnx"), tenon.load(stem, (x,)), tenon.load("builtin:multi_conv_bn")):
        gm = model.to_fx(modules=True)
        inputs = inputs_for(model, {})
        kinds = [type(gm.get_submodule(node.target)) for node in gm.graph.nodes if node.op == "call_module"]
        assert kinds == [nn.Conv2d, nn.BatchNorm2d] * 2
        assert tenon.verify_pass(gm, fold_norms, inputs, samples=1)
        fold_norms(gm)
        assert not any(isinstance(each, nn.BatchNorm2d) for each in gm.modules())
        torch.testing.assert_close(gm(*inputs), model.compile()(*inputs), rtol=1e-3, atol=1e-4)


def test_weights_that_others_share_stay_where_they_are():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(9, 6)

        def forward(self, i):
            return self.table(i) @ self.table.weight.T

    tied, i = Tied(), torch.tensor([1, 2])
    gm = tenon.load(tied, (i,)).to_fx(modules=True)
    assert not any(node.op == "call_module" for node in gm.graph.nodes)
    torch.testing.assert_close(gm(i), tied(i))


def test_transformers_and_images_are_code():
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")
    encoder = nn.TransformerEncoder(layer, 2).eval()
    x = torch.randn(2, 5, 16)
    gm = tenon.load(encoder, (x,), dynamic=({0: "b", 1: "s"},)).to_fx(modules=True)
    assert "scaled_dot_product_attention" in gm.code
    for shape in ((2, 5, 16), (3, 7, 16)):
        x = torch.randn(shape)
        torch.testing.assert_close(gm(x), encoder(x), rtol=1e-4, atol=1e-5)
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Upsample(scale_factor=2), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1),
                        nn.Flatten(), nn.Linear(8, 4), nn.Softmax(-1)).eval()
    x = torch.randn(2, 3, 9, 9)
    torch.testing.assert_close(tenon.load(net, (x,)).to_fx()(x), net(x))


def test_attention_is_called_as_it_was():
    attend = nn.functional.scaled_dot_product_attention

    class Attend(nn.Module):
        def forward(self, q, k, v, mask, bias):
            return (attend(q, k, v, mask), attend(q, k, v, bias), attend(q, k, v, is_causal=True),
                    attend(q, k[:, :1], v[:, :1], scale=0.3, enable_gqa=True))

    inputs = (torch.randn(2, 4, 5, 8), torch.randn(2, 4, 6, 8), torch.randn(2, 4, 6, 8),
              torch.randn(5, 6) > -0.5, torch.randn(2, 1, 5, 6))
    inputs[3][:, 0] = True
    gm = tenon.load(Attend(), inputs).to_fx()
    for got, want in zip(gm(*inputs), Attend()(*inputs), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)
