"""The plug-in for ONNX Runtime: sessions all of whose nodes it takes, beside those of the CPU provider."""

import pathlib
import platform
import subprocess
import sys

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


def plugin_session(model, fallback=False, session=(), **provider_options):
    options = onnxruntime.SessionOptions()
    for key, value in dict(session).items():
        options.add_session_config_entry(key, value)
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


# --- models with a saved program (EPContext)

def context(embed, path=None):
    entries = {"ep.context_enable": "1", "ep.context_embed_mode": "1" if embed else "0"}
    return entries | ({"ep.context_file_path": str(path)} if path else {})


def write_context(folder, embed, **provider_options):
    """The model that a session wrote, and what that session computes."""
    onnx.save(layer(), folder / "layer.onnx")
    session = plugin_session(str(folder / "layer.onnx"), session=context(embed, folder / "saved.onnx"), **provider_options)
    return folder / "saved.onnx", session.run(None, {"ids": numpy.arange(7)})[0]


def node_of(path):
    node, = onnx.load(path).graph.node
    return node, {each.name: helper.get_attribute_value(each) for each in node.attribute}


def change_node(path, **attributes):
    model = onnx.load(path)
    for each in model.graph.node[0].attribute:
        if each.name in attributes:
            each.CopyFrom(helper.make_attribute(each.name, attributes[each.name]))
    onnx.save(model, path)


NOT_COMPILED = {"session.disable_model_compile": "1"}


@pytest.mark.parametrize("embed", [False, True])
def test_saved_programs(tmp_path, embed):
    path, expected = write_context(tmp_path, embed, numerics="strict")
    node, attributes = node_of(path)
    assert (node.op_type, node.domain, attributes["source"]) == ("EPContext", "com.microsoft", b"TenonExecutionProvider")
    assert (tmp_path / "saved.tnp").exists() != embed
    assert embed or attributes["ep_cache_context"] == b"saved.tnp"
    assert path.stat().st_size > 10000 if embed else path.stat().st_size < 2000
    for model in [str(path)] + ([path.read_bytes()] if embed else []):
        session = plugin_session(model, session=NOT_COMPILED, check_weights="1")
        for rows in (1, 7, 50):
            assert session.run(None, {"ids": numpy.arange(rows)})[0].shape == (rows, 64)
        assert (session.run(None, {"ids": numpy.arange(7)})[0] == expected).all()
    with pytest.raises(Exception, match="compil"):
        plugin_session(str(tmp_path / "layer.onnx"), session=NOT_COMPILED)


def test_saved_programs_are_named_after_the_model(tmp_path):
    onnx.save(layer(), tmp_path / "layer.onnx")
    plugin_session(str(tmp_path / "layer.onnx"), session=context(embed=False))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["layer.onnx", "layer_ctx.onnx", "layer_ctx.tnp"]


def test_saved_programs_of_models_in_memory(tmp_path):
    """The path says in which folder the program is."""
    path, expected = write_context(tmp_path, embed=False)
    session = plugin_session(path.read_bytes(), session={"ep.context_file_path": str(path)})
    assert (session.run(None, {"ids": numpy.arange(7)})[0] == expected).all()


def test_compile_api(tmp_path):
    options = onnxruntime.SessionOptions()
    devices = [each for each in onnxruntime.get_ep_devices() if each.ep_name == "TenonExecutionProvider"]
    options.add_provider_for_devices(devices, {})
    given = layer().SerializeToString()
    compiler = onnxruntime.ModelCompiler(options, given, embed_compiled_data_into_model=True)
    session = plugin_session(compiler.compile_to_bytes(), session=NOT_COMPILED)
    assert session.run(None, {"ids": numpy.arange(7)})[0].shape == (7, 64)
    with pytest.raises(Exception, match="ep.context_file_path must name the file"):
        onnxruntime.ModelCompiler(options, given).compile_to_bytes()
    onnxruntime.ModelCompiler(options, given).compile_to_file(str(tmp_path / "ahead.onnx"))
    assert plugin_session(str(tmp_path / "ahead.onnx"), session=NOT_COMPILED).run(None, {"ids": numpy.arange(7)})[0].shape == (7, 64)


def test_damaged_saved_programs(tmp_path):
    def refused(message, **provider_options):
        with pytest.raises(Exception, match=message):
            plugin_session(str(path), **provider_options)

    path, expected = write_context(tmp_path, embed=False)
    program = tmp_path / "saved.tnp"
    good = program.read_bytes()
    for damaged, message in ((good[:5000], "the saved program is cut off: 5000 of its"), (b"nothing", "this is no saved program"),
                             (good[:8] + b"\2" + good[9:], "a later version of Tenon saved this program, in format 2"),
                             (good[:300] + bytes([good[300] ^ 1]) + good[301:], "the saved program is damaged")):
        program.write_bytes(damaged)
        refused(f"EPContext: .*saved.tnp: {message}")
    program.write_bytes(good[:-100] + bytes([good[-100] ^ 1]) + good[-99:])
    refused("its section \"weights\" is not as it was written", check_weights="1")
    (tmp_path / "other").mkdir()
    write_context(tmp_path / "other", embed=False, numerics="strict", target="x86-64" if "x86" in platform.machine() else "armv8")
    program.write_bytes((tmp_path / "other/saved.tnp").read_bytes())
    refused("saved.tnp is not the program that the model was written with")
    program.unlink()
    refused("cannot open .*saved.tnp: No such file or directory")
    for outside in ("../saved.tnp", str(program)):
        change_node(path, ep_cache_context=outside)
        refused("must be a path within the folder of the model")

    (tmp_path / "embedded").mkdir()
    path, expected = write_context(tmp_path / "embedded", embed=True)
    change_node(path, ep_cache_context=node_of(path)[1]["ep_cache_context"][:-10])
    refused("the saved program is cut off")
    change_node(path, source="SomebodyElse")
    refused("fallback|EPContext")


# ONNX Runtime's functions by their places in its table, which stay: the Python interface has no such question.
COMPATIBILITY = """
import ctypes, sys
library, plugin, *questions = sys.argv[1:]
runtime = ctypes.CDLL(library)
runtime.OrtGetApiBase.restype = ctypes.POINTER(ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32))
table = ctypes.cast(runtime.OrtGetApiBase()[0](23), ctypes.POINTER(ctypes.c_void_p))
def call(number, *arguments):
    status = ctypes.CFUNCTYPE(ctypes.c_void_p, *([ctypes.c_void_p] * len(arguments)))(table[number])(*arguments)
    assert not status, ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(table[2])(status)
environment, devices, count, answer = ctypes.c_void_p(), ctypes.POINTER(ctypes.c_void_p)(), ctypes.c_size_t(), ctypes.c_int()
call(3, 2, b"", ctypes.addressof(environment))  # CreateEnv
call(301, environment, b"tenon", plugin.encode())  # RegisterExecutionProviderLibrary
call(303, environment, ctypes.addressof(devices), ctypes.addressof(count))  # GetEpDevices
name_of = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)(table[312])  # EpDevice_EpName
ours, = (device for device in devices[:count.value] if name_of(device) == b"TenonExecutionProvider")
for question in questions:
    call(388, ctypes.addressof(ctypes.c_void_p(ours)), 1, question.encode(), ctypes.addressof(answer))  # GetModelCompatibilityForEpDevices
    print(answer.value)
"""
NOT_APPLICABLE, OPTIMAL, PREFER_RECOMPILATION, UNSUPPORTED = range(4)


def test_targets_of_saved_programs(tmp_path):
    def written(target):
        (tmp_path / target).mkdir()
        path, _ = write_context(tmp_path / target, embed=True, target=target)
        return path, {each.key: each.value for each in onnx.load(path).metadata_props}["ep_compatibility_info.TenonExecutionProvider"]

    here, elsewhere = ("x86-64", "armv8") if "x86" in platform.machine() else ("armv8", "x86-64")
    path, said = written(f"{here},{elsewhere}")
    first, best, other = said.splitlines()
    assert [line.split()[0] for line in (first, best, other)] == ["tenon", here, elsewhere]
    numpy.testing.assert_allclose(plugin_session(str(path)).run(None, {"ids": numpy.arange(7)})[0],
                                  plugin_session(layer().SerializeToString()).run(None, {"ids": numpy.arange(7)})[0], rtol=1e-4, atol=1e-5)
    for target, message in ((elsewhere, f"target: the session runs what it writes, but this machine does not run {elsewhere}"),
                            ("pentium", "target: there is no target 'pentium'")):
        with pytest.raises(Exception, match=message):
            written(target)
    for library in (pathlib.Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so*"):
        questions = {written("native")[1]: OPTIMAL, said: PREFER_RECOMPILATION, f"{first}\n{other}\n": UNSUPPORTED,
                     said.replace("format 1", "format 2"): UNSUPPORTED, "format 1": NOT_APPLICABLE, "": NOT_APPLICABLE}
        answers = subprocess.run([sys.executable, "-c", COMPATIBILITY, library, LIBRARY, *questions], capture_output=True, text=True, check=True)
        assert [int(answer) for answer in answers.stdout.split()] == list(questions.values())


def test_a_graph_with_saved_programs_and_other_nodes(tmp_path):
    """Saved programs run in the plug-in, one by one; the whole of what is left stays with others."""
    path, expected = write_context(tmp_path, embed=True)
    model = onnx.load(path)
    model.graph.value_info.append(model.graph.output[0])
    model.graph.node.append(helper.make_node("Neg", [model.graph.output[0].name], ["negative"]))
    model.graph.output[0].name = "negative"
    given = model.SerializeToString()
    assert (plugin_session(given, fallback=True).run(None, {"ids": numpy.arange(7)})[0] == -expected).all()
    with pytest.raises(Exception, match="fallback"):
        plugin_session(given)


def test_what_is_left_to_others_is_not_saved(tmp_path):
    graph = helper.make_graph([helper.make_node("SequenceConstruct", ["x", "x"], ["s"])], "main",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
                              [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [2])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    plugin_session(model, fallback=True, session=context(embed=False, path=tmp_path / "saved.onnx"))
    assert list(tmp_path.glob("*.tnp")) == []
