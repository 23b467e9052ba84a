"""Ops written in Python: read, compiled, verified and written like Tenon's own."""

import gc

import numpy
import onnx
import pytest
from onnx import TensorProto, helper

import tenon
from tenon import ops

W = numpy.array([[1, 0, -1, 2], [0.5, 1, 0, -2], [3, 1, 0, 0]], dtype="float32")
B = numpy.array([0.5, 0, -1], dtype="float32")
X = numpy.arange(20, dtype="float32").reshape(5, 4) - 8
Y = numpy.maximum(X @ W.T + B, 0)


def linear_relu(x, weight, bias):
    """relu(x · weightᵀ + bias)"""
    return numpy.maximum(x @ weight.T + bias, 0)


def linear_relu_types(x, weight, bias):
    return f"{x.dtype}[{x.shape[0]},{weight.shape[0]}]"


def linear_relu_of_ops(x, weight, bias):
    return ops.relu(ops.linear(x, weight, bias))


fused = tenon.add_op("test_linear_relu", eval=linear_relu, types=linear_relu_types, decompose=linear_relu_of_ops,
                     onnx="com.example.TestLinearReLU", torch="tenon_tests::linear_relu")
on_host = tenon.add_op("test_linear_relu_on_host", eval=linear_relu, types=linear_relu_types, onnx="com.example.TestOnHost")


def onnx_model(op_type, shape=("batch", 4), domain="com.example", inputs=("x", "w", "b"), **attributes):
    return helper.make_model(
        helper.make_graph(
            [helper.make_node(op_type, inputs, ["h"], domain=domain, **attributes), helper.make_node("Relu", ["h"], ["y"])], "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            [helper.make_tensor("w", TensorProto.FLOAT, W.shape, W.ravel()), helper.make_tensor("b", TensorProto.FLOAT, B.shape, B)]),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)])


@pytest.mark.parametrize("op_type", ["TestLinearReLU", "TestOnHost"])
def test_files_with_the_op_are_compiled(op_type, tmp_path):
    model = tenon.load(onnx_model(op_type))
    assert model.outputs[0].type == "f32[batch,3]"
    numpy.testing.assert_allclose(model.compile()(X), Y, rtol=1e-5)
    assert model.verify(samples=1)
    assert model.bisect() is None
    small = model.optimize()
    small.save(tmp_path / "small.onnx")
    assert [node.op_type for node in onnx.load(tmp_path / "small.onnx").graph.node][0] == op_type
    numpy.testing.assert_allclose(tenon.compile(tmp_path / "small.onnx")(X), Y, rtol=1e-5)


def test_what_is_decomposed_is_compiled_and_the_rest_runs_on_the_host():
    assert "host" not in tenon.load(onnx_model("TestLinearReLU")).print(stage="program")
    assert "test_linear_relu_on_host" in tenon.load(onnx_model("TestOnHost")).print(stage="program")


def test_a_rule_makes_nodes_of_the_op():
    model = tenon.trace(lambda x, w, b: ops.relu(ops.linear(x, w, b)), "f32[n,4]", "f32[3,4]", "f32[3]")
    rule = tenon.Rule("use-test-linear-relu", numerics="bit-exact", pattern=lambda x, w, b: ops.relu(ops.linear(x, w, b)),
                      replacement=fused)
    with tenon.using(rule):
        small = model.optimize()
        assert [node.target for node in small.graph.nodes if node.op == "call_function"] == [fused]
        assert ops.test_linear_relu == fused and "test_linear_relu" in dir(ops)
        checked = model.verify(samples=1)
        assert checked, str(checked)
        numpy.testing.assert_allclose(model.compile()(X, W, B), Y, rtol=1e-5)


def test_a_kernel_that_is_not_the_decomposition_is_found():
    tenon.add_op("test_double", eval=lambda x: x * 2, types=lambda x: x, decompose=lambda x: x * 3.0)
    verification = tenon.trace(lambda x: ops.test_double(x), "f32[4]").verify(samples=1)
    assert not verification and "FAILED" in str(verification)
    tenon.add_op("test_double", eval=lambda x: x * 2, types=lambda x: x, decompose=lambda x: x * 2.0)  # as a cell that runs again
    assert tenon.trace(lambda x: ops.test_double(x), "f32[4]").verify(samples=1)


def test_a_decomposition_says_enough():
    def swish(x, *, beta=1.0):
        return x * ops.sigmoid(x * beta)

    op = tenon.add_op("test_swish", decompose=swish, onnx="com.example.TestSwish")
    model = tenon.trace(lambda x: op(x, beta=2.0), "f32[n,4]")
    assert model.outputs[0].type == "f32[n,4]"
    numpy.testing.assert_allclose(model.compile()(X), X / (1 + numpy.exp(-2 * X)), rtol=1e-5, atol=1e-6)
    checked = model.verify(samples=1)
    assert checked and "gradients" in str(checked)
    read = tenon.load(onnx_model("TestSwish", inputs=("x",), beta=3.0))
    assert [node.kwargs for node in read.graph.nodes if node.target == op] == [{"beta": 3.0}]


def test_operands_and_attributes_of_all_kinds():
    seen = []

    def pick(first, second=None, *, index: int, scale=1.5, name="n", sizes=[1, 2], on=True):
        seen.append((type(first), second is None, index, scale, name, sizes, on))
        return first[index], (first * scale).astype("float64")

    def pick_types(first, second=None, *, index: int, scale=1.5, name="n", sizes=[1, 2], on=True):
        return [f"{first.dtype}[{first.shape[1]}]", f"f64[{first.shape[0]},{first.shape[1]}]"]

    op = tenon.add_op("test_pick", eval=pick, types=pick_types)
    row, scaled = tenon.trace(lambda x: op(x, index=2, sizes=[3]), "f32[n,4]").compile()(X)
    assert numpy.array_equal(row, X[2]) and scaled.dtype == "float64" and numpy.array_equal(scaled, X * 1.5)
    assert (numpy.ndarray, True, 2, 1.5, "n", [3], True) in seen
    with pytest.raises(tenon.UserError, match="index"):
        tenon.trace(lambda x: op(x), "f32[n,4]")

    total = tenon.add_op("test_total", eval=lambda *xs: sum(xs), types=lambda *xs: xs[0])
    added = tenon.trace(lambda x, y: total([x, y, x]), "bf16[n]", "bf16[n]")
    assert added.inputs[0].dtype == "bf16" and added.verify(samples=1)


def test_a_result_whose_size_is_dynamic():
    positive = tenon.add_op("test_positive", eval=lambda x: x[x > 0], types=lambda x: f"{x.dtype}[?]")
    net = tenon.trace(lambda x: positive(x) * 2.0, "f32[n]").compile()
    assert numpy.array_equal(net(numpy.array([1, -1, 3], dtype="float32")), [2, 6])


def test_a_kernel_keeps_its_operands():
    kept = []

    def keep(x):
        kept.append(x)
        x[:] += 1  # a copy
        return x

    op = tenon.add_op("test_keep", eval=keep, types=lambda x: x)
    net = tenon.trace(lambda x: op(ops.exp(x)), "f32[4]").compile()
    x = numpy.zeros(4, dtype="float32")
    for _ in range(3):
        assert numpy.array_equal(net(x), [2, 2, 2, 2])
    del net
    gc.collect()
    assert all(numpy.array_equal(each, [2, 2, 2, 2]) for each in kept)


def test_results_that_are_not_of_their_types_are_errors():
    wrong = {"shape": lambda x: x[:1], "dtype": lambda x: x.astype("float64"), "count": lambda x: [x, x]}
    for word, function in wrong.items():
        op = tenon.add_op(f"test_wrong_{word}", eval=function, types=lambda x: x)
        for size in ("4", "n"):
            net = tenon.trace(lambda x: op(x), f"f32[{size}]").compile()
            with pytest.raises(tenon.UserError, match=f"test_wrong_{word}: its function gave"):
                net(numpy.ones(4, dtype="float32"))
    op = tenon.add_op("test_wrong_kind", eval=lambda x: 3, types=lambda x: x)
    with pytest.raises(tenon.UserError, match="no tensor"):
        tenon.trace(lambda x: op(x), "f32[4]").compile()(numpy.ones(4, dtype="float32"))


def test_an_exception_leaves_with_its_traceback():
    def fail(*_):
        raise KeyError("mine")

    def note(use):
        with pytest.raises(KeyError, match="mine") as caught:
            use()
        assert caught.traceback[-1].name == "fail"
        return caught.value.__notes__

    x = numpy.ones(4, dtype="float32")
    op = tenon.add_op("test_failing", eval=fail, types=lambda *x: x[0])
    model = tenon.trace(lambda x: op([x]) + 1.0, "f32[4]")
    net = model.compile()
    for use in (lambda: net(x), lambda: model.verify(samples=1), lambda: net(x)):
        assert note(use) == ["in eval of the op test_failing"]
    working = tenon.load("builtin:tiny").compile()
    with pytest.raises(tenon.UserError, match="inputs"):  # not the exception before
        working()
    failing_types = tenon.add_op("test_failing_types", eval=lambda x: x, types=lambda x: fail())
    assert note(lambda: tenon.trace(lambda x: failing_types(x), "f32[4]")) == ["in types of the op test_failing_types"]
    undone = tenon.add_op("test_failing_decomposition", eval=lambda x: x, types=lambda x: x, decompose=lambda x: fail())
    model = tenon.trace(lambda x: undone(x), "f32[4]")
    assert note(model.compile) == ["in decompose of the op test_failing_decomposition"]


def test_mistakes_are_errors():
    def refuse(match, name="test_mistake", **functions):
        with pytest.raises(tenon.UserError, match=match):
            tenon.add_op(name, **functions)

    same = {"eval": lambda x: x, "types": lambda x: x}
    refuse("decompose, or functions eval and types", eval=lambda x: x)
    refuse("there is an op \"relu\" already", name="relu", **same)
    refuse("cannot be the name", name="not a name", **same)
    refuse("cannot be the name", name="Op", **same)
    refuse("other parameters", eval=lambda x: x, types=lambda x, y: x)
    refuse("at least one operand", eval=lambda: 1, types=lambda: "f32[]")
    refuse("default is None", eval=lambda x=1: x, types=lambda x=1: x)
    refuse("one of bool", eval=lambda x, *, f=print: x, types=lambda x, *, f=print: x)
    refuse("one by one", eval=lambda x, **f: x, types=lambda x, **f: x)
    refuse("DOMAIN.NAME", onnx="Name", **same)
    refuse("which is read already", onnx="com.microsoft.Gelu", **same)
    refuse("which is read already", onnx="com.example.TestLinearReLU", **same)
    refuse("differs from this one", name="test_linear_relu", **same)
    refuse("NAMESPACE::NAME", name="test_mistake_in_torch", torch="aten::relu", **same)
    refuse("read as the op test_linear_relu already", name="test_other_in_torch", torch="tenon_tests::linear_relu", **same)
    for name, types, match in (("test_no_text", lambda x: 3, "text such as"), ("test_no_texts", lambda x: [3], "text such as"),
                               ("test_no_type", lambda x: "g32[n]", "g32"), ("test_other_size", lambda x: "f32[k]", "no operand has the size k")):
        op = tenon.add_op(name, eval=lambda x: x, types=types)
        with pytest.raises(tenon.UserError, match=match):
            tenon.trace(lambda x: op(x), "f32[n]")
    with pytest.raises(tenon.UnsupportedError, match="ranks of its operands must be known"):
        tenon.load(onnx_model("TestOnHost", shape=None))
    tenon.add_op("test_none", decompose=lambda x: None)
    with pytest.raises(tenon.UserError, match="test_none: its decomposition returns None"):
        tenon.trace(lambda x: ops.test_none(x), "f32[n]")


def test_an_operator_of_pytorch():
    torch = pytest.importorskip("torch")

    @torch.library.custom_op("tenon_tests::linear_relu", mutates_args=())
    def linear_relu_of_torch(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        raise AssertionError("Tenon computes it")

    @linear_relu_of_torch.register_fake
    def _(x, weight, bias):
        return x.new_empty(x.shape[0], weight.shape[0])

    class Net(torch.nn.Module):
        def forward(self, x):
            return linear_relu_of_torch(x, torch.from_numpy(W), torch.from_numpy(B)) * 2

    x = torch.from_numpy(X)
    net = tenon.compile(Net(), (x,), dynamic=({0: "batch"},))
    assert any(node.target == fused for node in net.model.graph.nodes)
    torch.testing.assert_close(net(x), torch.from_numpy(Y * 2))
    compiled = torch.compile(Net(), backend="tenon", options={"fallback": "error"})
    torch.testing.assert_close(compiled(x), torch.from_numpy(Y * 2))
