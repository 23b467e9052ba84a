"""The plug-in for ONNX Runtime: sessions all of whose nodes it takes, beside those of the CPU provider."""

import pathlib

import numpy
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build/libtenon_ep.so"

pytestmark = pytest.mark.skipif(
    not LIBRARY.exists(), reason="the plug-in for ONNX Runtime is not built: its headers are not here")


@pytest.fixture(scope="module", autouse=True)
def registered():
    if LIBRARY.exists():
        onnxruntime.register_execution_provider_library("tenon", str(LIBRARY))


def plugin_session(model, fallback=False, **provider_options):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    devices = [each for each in onnxruntime.get_ep_devices() if each.ep_name == "TenonExecutionProvider"]
    options.add_provider_for_devices(devices, provider_options)
    if not fallback:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return onnxruntime.InferenceSession(model, options, enable_fallback=False)


def expect_same(model, *feeds):
    given = model if isinstance(model, str) else model.SerializeToString()
    session = plugin_session(given)
    expected = onnxruntime.InferenceSession(given, providers=["CPUExecutionProvider"])
    for feed in feeds:
        for ours, theirs in zip(session.run(None, feed), expected.run(None, feed), strict=True):
            assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
            if ours.dtype == object:
                assert ours.tolist() == theirs.tolist()
            else:
                numpy.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def make(nodes, inputs, outputs, weights=(), opset=17):
    def values(each):
        return [helper.make_tensor_value_info(name, dtype, shape) for name, (dtype, shape) in each.items()]
    graph = helper.make_graph(nodes, "main", values(inputs), values(outputs), list(weights))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def layer():
    """A layer of any number of rows, with a weight that is packed, one that is looked up in, and one that is added."""
    random = numpy.random.default_rng(0)
    weights = [onnx.numpy_helper.from_array(random.standard_normal(shape).astype("f"), name)
               for name, shape in {"table": (50, 64), "w": (64, 64), "b": (64,)}.items()]
    return make([helper.make_node("Gather", ["table", "ids"], ["rows"]), helper.make_node("MatMul", ["rows", "w"], ["p"]),
                 helper.make_node("Add", ["p", "b"], ["s"]), helper.make_node("Relu", ["s"], ["y"])],
                {"ids": (TensorProto.INT64, ["n"])}, {"y": (TensorProto.FLOAT, ["n", 64])}, weights)


def test_any_size():
    expect_same(layer(), *({"ids": numpy.arange(n)} for n in (1, 7, 50)))


def test_weights_in_a_file_of_their_own(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(layer(), path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    expect_same(str(path), {"ids": numpy.arange(9)})


def test_nested_graphs():
    def branch(name, op):
        return helper.make_graph([helper.make_node(op, ["x", "one"], [name])], name, [],
                                 [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"])])
    model = make([helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0), helper.make_node("Greater", ["sum", "zero"], ["c"]),
                  helper.make_node("If", ["c"], ["y"], then_branch=branch("t", "Add"), else_branch=branch("e", "Sub"))],
                 {"x": (TensorProto.FLOAT, ["n"])}, {"y": (TensorProto.FLOAT, ["n"])},
                 [helper.make_tensor("one", TensorProto.FLOAT, [], [1]), helper.make_tensor("zero", TensorProto.FLOAT, [], [0])])
    expect_same(model, {"x": numpy.array([1, 2], "f")}, {"x": numpy.array([-1, -2, -3], "f")})


def test_sizes_that_depend_on_elements_and_strings():
    expect_same(make([helper.make_node("NonZero", ["x"], ["y"])], {"x": (TensorProto.FLOAT, ["n"])},
                     {"y": (TensorProto.INT64, [1, "m"])}), {"x": numpy.array([0, 1, 0, 2], "f")}, {"x": numpy.zeros(3, "f")})
    expect_same(make([helper.make_node("StringConcat", ["x", "x"], ["y"])], {"x": (TensorProto.STRING, ["n"])},
                     {"y": (TensorProto.STRING, ["n"])}, opset=20), {"x": numpy.array(["a", "été", ""], dtype=object)})


def test_what_tenon_lacks_stays_with_others():
    graph = helper.make_graph([helper.make_node("SequenceConstruct", ["x", "x"], ["s"])], "main",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
                              [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [2])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    session = plugin_session(model, fallback=True)
    assert len(session.run(None, {"x": numpy.zeros(2, "f")})[0]) == 2
    with pytest.raises(Exception, match="fallback"):
        plugin_session(model)


def test_options():
    given = layer().SerializeToString()
    assert plugin_session(given, threads="1", numerics="strict").run(None, {"ids": numpy.arange(3)})[0].shape == (3, 64)
    for options, message in (({"threads": "many"}, "threads must be 0 to 1024, but is 'many'"),
                             ({"precision": "f8"}, "precision must be f32 or bf16, but is 'f8'")):
        with pytest.raises(Exception, match=message):
            plugin_session(given, **options)


def test_wrong_sizes():
    model = make([helper.make_node("Add", ["a", "b"], ["y"])], {name: (TensorProto.FLOAT, ["n"]) for name in "ab"},
                 {"y": (TensorProto.FLOAT, ["n"])})
    session = plugin_session(model.SerializeToString())
    with pytest.raises(Exception, match="n"):
        session.run(None, {"a": numpy.zeros(2, "f"), "b": numpy.zeros(3, "f")})
    assert session.run(None, {"a": numpy.ones(2, "f"), "b": numpy.ones(2, "f")})[0].tolist() == [2, 2]
