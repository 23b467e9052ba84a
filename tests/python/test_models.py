"""Models from all that they come from, and what is done with them."""

import json
import subprocess
import sys
import warnings

import numpy
import onnx
import pytest
from onnx import helper

import tenon
from tenon import ops

MLP = "builtin:mlp_softmax"


def small_onnx():
    return helper.make_model(
        helper.make_graph(
            [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Identity", ["r"], ["y"])], "g",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 2])],
            [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 2])]),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "tenon", *arguments], capture_output=True, text=True, timeout=1800)


def test_a_model_is_loaded_from_anything_that_holds_one(tmp_path):
    proto = small_onnx()
    onnx.save(proto, tmp_path / "model.onnx")
    loaded = [
        tenon.load(tmp_path / "model.onnx"), tenon.load(str(tmp_path / "model.onnx")), tenon.load(proto),
        tenon.load(proto.SerializeToString(), name="model.onnx"),
    ]
    assert len({str(model) for model in loaded}) == 1
    model = loaded[0]
    assert model.inputs == [tenon.Port("x", "f32[n,2]", "f32", ("n", 2))]
    assert [port.name for port in model.outputs] == ["y"] and model.dimensions == ["n"]
    assert repr(model).startswith("<tenon.Model ") and "x: f32[n,2]" in repr(model)
    assert tenon.load(model) is model


@pytest.mark.parametrize("what, message", [
    ("no-such-file.onnx", "no-such-file"), (b"abc", "name"), (3, "int"), ("builtin:nothing", "nothing"),
])
def test_what_is_no_model_is_an_error(what, message):
    with pytest.raises(tenon.UserError, match=message):
        tenon.load(what)


def test_damaged_bytes_are_an_error():
    data = small_onnx().SerializeToString()
    for size in (1, len(data) // 2, len(data) - 1):
        with pytest.raises(tenon.Error):
            tenon.load(data[:size], name="model.onnx")


def test_unsupported_ops_are_named():
    proto = small_onnx()
    proto.graph.node[0].op_type = "ImageDecoder"
    with pytest.raises(tenon.UnsupportedError, match="ImageDecoder") as caught:
        tenon.load(proto)
    assert isinstance(caught.value, (ValueError, NotImplementedError))


def test_text_is_what_the_command_line_prints():
    model = tenon.load(MLP)
    assert model.print() == command("print", MLP).stdout
    assert model.print("fx") == command("print", MLP, "--as", "fx").stdout
    for stage in ("optimised", "lowered", "fused"):
        assert model.print(stage=stage) == command("print", MLP, "--stage", stage).stdout
    for wrong in ({"stage": "nowhere"}, {"form": "nothing"}, {"form": "fx", "stage": "fused"}):
        with pytest.raises(tenon.UserError):
            model.print(**wrong)


def test_optimizing_gives_a_new_model_and_says_what_was_done():
    model = tenon.load("builtin:unoptimized")
    before = str(model)
    small = model.optimize()
    assert small.node_count < model.node_count and str(model) == before
    assert small.optimization.rewrites and {"pass", "rule", "nodes"} <= set(small.optimization.rewrites[0])
    assert str(small.optimization).startswith("pass ")
    only = model.optimize(passes=["remove-dead"])
    assert {each["pass"] for each in only.optimization.rewrites} <= {"remove-dead"}
    with pytest.raises(tenon.UserError, match="no pass"):
        model.optimize(passes=["remove-ded"])


def test_verifying_and_bisecting():
    model = tenon.load(MLP)
    verification = model.verify(samples=1)
    assert verification and verification.passed and "compiled program" in str(verification)
    assert verification.to_dict()["passes"][-1]["name"] == "compiled program"
    assert model.bisect() is None
    assert "<pre>" in verification._repr_html_()


def test_two_models_are_compared():
    right = tenon.trace(lambda x: ops.relu(x) * 2.0, "f32[4]")
    assert right.verify_against(tenon.trace(lambda x: 2.0 * ops.relu(x), "f32[4]"))
    assert not right.verify_against(tenon.trace(lambda x: ops.relu(x) * 3.0, "f32[4]"))


def test_benchmarks_and_reports(tmp_path):
    model = tenon.load(MLP)
    benchmark = model.bench(seconds=0.02, against="unfused", threads=1)
    assert benchmark.median_ms > 0 and benchmark.speed_up > 0 and "median" in str(benchmark)
    with pytest.raises(tenon.UserError, match="against"):
        model.bench(against="nothing")
    report = model.report(seconds=0.02)
    report.save(tmp_path / "report.html")
    report.save(tmp_path / "report.json")
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert json.loads((tmp_path / "report.json").read_text()) == report.to_dict()
    assert "iframe" in report._repr_html_()


def test_inputs_are_given_in_order_by_name_or_alone():
    model = tenon.trace(lambda a, b: ops.relu(a - b), "f32[2]", "f32[2]")
    a, b = numpy.array([1, 2], dtype="f"), numpy.array([3, 1], dtype="f")
    for inputs in ((a, b), [a, b], {"b": b, "a": a}):
        assert model.verify(inputs) and model.verify_against(model, inputs)
        assert model.bisect(inputs, {"output": numpy.array([0, 1], dtype="f")}) is None
        assert model.bench(inputs, seconds=0.01, threads=1).median_ms > 0
    with pytest.raises(tenon.UserError, match="wanted for a, b, but are given for a, c"):
        model.verify({"a": a, "c": b})
    alone = tenon.trace(lambda x: ops.relu(x), "f32[2]")
    assert alone.verify(a) and "output" in str(alone.report(a, seconds=0.01).to_dict())


def test_saving(tmp_path):
    model = tenon.load(small_onnx())
    model.save(tmp_path / "again.onnx", opset=18)
    assert onnx.load(tmp_path / "again.onnx").opset_import[0].version == 18
    model.save(tmp_path / "again.tenon")
    assert str(tenon.load(tmp_path / "again.tenon")) == str(model)
    with pytest.raises(tenon.UserError, match="must end in"):
        model.save(tmp_path / "again.txt")


def test_a_program_says_what_it_is():
    model = tenon.load(small_onnx())
    program = model.compile()
    assert program.model is model and program.inputs == model.inputs and program.outputs == model.outputs
    assert repr(program) == "<tenon.Program: (x: f32[n,2]) -> (y: f32[n,2])>"
    bound = tenon.compile(small_onnx(), sizes={"n": 3})
    assert bound.inputs[0].shape == bound.model.inputs[0].shape == (3, 2)
    assert bound.model.verify(samples=1)


def test_sizes_are_bound():
    model = tenon.load(small_onnx())
    assert model.bind(n=3).inputs[0].shape == (3, 2) == model.bind({"n": 3}).inputs[0].shape
    program = model.compile(sizes={"n": 3})
    assert program(numpy.ones((3, 2), dtype="f")).shape == (3, 2)
    with pytest.raises(tenon.UserError):
        program(numpy.ones((4, 2), dtype="f"))
    with pytest.raises(tenon.UserError, match="m"):
        model.bind(m=3)


@pytest.mark.parametrize("options, message", [
    ({"numerics": "exact"}, "exact"), ({"precision": "f8"}, "precision"), ({"threads": -1}, "threads"),
    ({"device": "tpu"}, "tpu"),
])
def test_options_that_mean_nothing_are_errors(options, message):
    with pytest.raises(tenon.UserError, match=message):
        tenon.compile(MLP, **options)


def test_the_command_line_is_there(tmp_path):
    shown = command("--version")
    assert shown.returncode == 0 and shown.stdout.startswith(f"tenon {tenon.__version__}")
    assert command("print", "builtin:nothing").returncode == 2
    assert tenon.show_config() is None


def test_a_module_that_trains_is_compiled_with_a_warning():
    torch = pytest.importorskip("torch")
    module, x = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)), torch.ones(2, 4)
    for use in (tenon.compile, tenon.load):
        with pytest.warns(UserWarning, match="BatchNorm1d is compiled as it trains") as caught:
            use(module.train(), (x,))
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        tenon.compile(module.eval(), (x,))
        tenon.compile(torch.nn.Linear(4, 4).train(), (x,))  # computes the same


def test_errors_of_made_up_inputs_say_what_to_give():
    model = tenon.trace(lambda table, ids: ops.gather(table, ids + 90, axis=0), "f32[100,4]", "i64[3]")
    inputs = {"table": numpy.ones((100, 4), dtype="float32"), "ids": numpy.array([1, 2, 3])}
    for use in (model.report, model.bench):
        with pytest.raises(tenon.UserError, match="out of range|outside|only") as caught:
            use(seconds=0.01)
        assert str(caught.value).endswith('give your own, inputs={"table": …, "ids": …}, for table: f32[100,4], ids: i64[3]')
        assert "--inputs" not in str(caught.value)
        assert use(inputs, seconds=0.01)
    with pytest.raises(tenon.UserError) as caught:
        model.bench({**inputs, "ids": numpy.array([11, 2, 3])}, seconds=0.01)
    assert "hint: the inputs" not in str(caught.value)
