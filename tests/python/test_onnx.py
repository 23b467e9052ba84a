"""The names of onnxruntime, onnxsim and onnx.backend, and the cases of onnx.backend.test."""

import pathlib
import re

import numpy
import onnx
import onnx.backend.test
import pytest
from onnx import helper

import tenon
from tenon.onnx import InferenceSession, backend, simplify


def model():
    weight = helper.make_tensor("w", onnx.TensorProto.FLOAT, [2, 3], [1, 2, 3, 4, 5, 6])
    return helper.make_model(
        helper.make_graph(
            [helper.make_node("Identity", ["x"], ["i"]), helper.make_node("MatMul", ["i", "w"], ["y"]),
             helper.make_node("Relu", ["y"], ["r"])], "g",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 2])],
            [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 3]) for name in ("y", "r")], [weight]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_inference_session(tmp_path):
    onnx.save(model(), tmp_path / "model.onnx")
    x = numpy.array([[1, -1]], dtype="f")
    for given in (str(tmp_path / "model.onnx"), model().SerializeToString()):
        session = InferenceSession(given, providers=["CPUExecutionProvider"])
        assert [each.name for each in session.get_inputs()] == ["x"]
        assert session.get_inputs()[0].type == "tensor(float)" and session.get_inputs()[0].shape == ["n", 2]
        y, r = session.run(None, {"x": x})
        assert y.tolist() == [[-3, -3, -3]] and r.tolist() == [[0, 0, 0]]
        assert [each.tolist() for each in session.run(["r"], {"x": x})] == [[[0, 0, 0]]]
        with pytest.raises(tenon.UserError, match="no output"):
            session.run(["z"], {"x": x})
        with pytest.raises(tenon.UserError, match="x is missing"):
            session.run(None, {"z": x})
    with pytest.raises(tenon.UserError, match="providers"):
        InferenceSession(given, providers=["NoneExecutionProvider"])


def test_simplify():
    simple, checked = simplify(model(), check_n=2)
    assert checked and [node.op_type for node in simple.graph.node] == ["Gemm", "Relu"]


def test_nodes_run_by_themselves():
    node = helper.make_node("Add", ["a", "b"], ["c"])
    a = numpy.array([1, 2], dtype="f")
    (c,) = backend.run_node(node, [a, a])
    assert c.tolist() == [2, 4]
    assert backend.supports_device("CPU") and not backend.supports_device("TPU")


# --- onnx.backend.test: cases that end otherwise than with what is expected, and why ---

KNOWN = dict(
    line.split(" ", 1)
    for line in (pathlib.Path(__file__).parent / "backend_known.txt").read_text().splitlines()
    if not line.startswith("#")
)

_suite = onnx.backend.test.BackendTest(backend.TenonBackend, __name__)
_suite.exclude(r"_cuda$")
_suite.exclude(r"test_(bvlc_alexnet|densenet121|inception_v1|inception_v2|resnet50|shufflenet|squeezenet|vgg19|zfnet512)_")
for _kind, _case in _suite.test_cases.items():
    for _name in [name for name in dir(_case) if name.startswith("test_")]:
        if _name.endswith("_cuda") or re.search(r"test_(bvlc_alexnet|densenet121|inception_v[12]|resnet50|shufflenet|squeezenet|vgg19|zfnet512)_", _name):
            setattr(_case, _name, None)  # of another device, or to be downloaded
        elif _name.removesuffix("_cpu") in KNOWN:
            _reason = KNOWN[_name.removesuffix("_cpu")]
            _always = not _reason.startswith("on some processors: ")
            setattr(_case, _name, pytest.mark.xfail(strict=_always, reason=_reason)(getattr(_case, _name)))
    globals()[_kind] = _case
