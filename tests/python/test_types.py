"""The types that editors and checkers see."""

import ast
import pathlib
import subprocess
import sys

import pytest

from tenon import _tenon

pytest.importorskip("mypy")

PROGRAM = """
import numpy
import tenon
from tenon import ops
from tenon.onnx import InferenceSession

model = tenon.load("builtin:mlp_softmax")
net = model.compile(threads=1)
x = numpy.ones((4, 16), dtype="float32")
y = net.run(x, out=numpy.empty((4, 8), dtype="float32"))
print(y.shape, net.inputs[0].shape, net.model.verify().passed, InferenceSession("model.onnx").run(None, {"x": x}))
merge = tenon.Rule("merge", pattern=lambda x, y: ops.exp(x) * ops.exp(y), replacement=lambda x, y: ops.exp(x + y))


@tenon.graph_pass
def relu_once(graph: tenon.Graph, journal: tenon.Journal) -> None:
    for node in graph.find_nodes(op="call_function", target=ops.relu):
        if journal.is_open:
            journal.applied("relu-once", [node], "bit-exact")
            with graph.inserting_before(node):
                node.replace_all_uses_with(graph.call_function(ops.gelu, node.args))


with tenon.using(merge, relu_once):
    culprit = model.bisect()
"""


def check(folder, text):
    (folder / "program.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder, "--follow-imports", "silent", "program.py"],
        capture_output=True, text=True, timeout=1800, cwd=folder).stdout


def test_a_program_has_types(tmp_path):
    assert check(tmp_path, PROGRAM) == "Success: no issues found in 1 source file\n"
    wrong = check(tmp_path, PROGRAM + "print(culprit.rule, net.sizes, tenon.lod)\n")
    # Versions of mypy word their errors differently.
    errors = [line for line in wrong.splitlines() if "error: " in line]
    for line, (name, code) in zip(errors, (("rule", "union-attr"), ("sizes", "attr-defined"), ("lod", "attr-defined")), strict=True):
        assert f'"{name}"' in line and line.endswith(f"[{code}]"), wrong


def test_the_types_are_those_of_the_binding():
    stub = ast.parse(pathlib.Path(_tenon.__file__).with_name("_tenon.pyi").read_text())
    classes = [each for each in stub.body if isinstance(each, ast.ClassDef)]
    assert len(classes) == 5
    for each in classes:
        named = {member.target.id if isinstance(member, ast.AnnAssign) else member.name for member in each.body}
        there = set(dir(getattr(_tenon, each.name)))
        assert named <= there | {"__buffer__"}, each.name  # Python 3.12 shows it
        assert {name for name in there if not name.startswith("_")} <= named, each.name
