"""Rules, passes and graphs written in Python."""

import pytest

import tenon
from tenon import ops

exponentials = tenon.trace(lambda a, b: ops.exp(a) * ops.exp(b) + 1.0, "f32[n,8]", "f32[n,8]", name="exponentials")
merge = tenon.Rule("merge-exponentials", pattern=lambda x, y: ops.exp(x) * ops.exp(y),
                   replacement=lambda x, y: ops.exp(x + y))


@tenon.graph_pass
def relu_once(graph, journal):
    """drops the second of two relus"""
    for node in graph.nodes:
        if node.target == ops.relu and node.args[0].target == ops.relu and journal.is_open:
            journal.applied("relu-once", [node], "bit-exact")
            node.replace_all_uses_with(node.args[0])
    graph.eliminate_dead_code()


def count(model, op):
    return len(model.graph.find_nodes(op="call_function", target=getattr(ops, op)))


def test_a_rule_takes_part_while_it_is_used():
    assert merge.formula == "(exp(x0) * exp(x1)) => exp((x0 + x1))"
    assert count(exponentials.optimize(), "exp") == 2
    with tenon.using(merge):
        small = exponentials.optimize()
        assert count(small, "exp") == 1
        assert small.optimization.rewrites[0]["rule"] == "merge-exponentials"
        assert exponentials.verify(samples=1)
        assert exponentials.bench(seconds=0.01, threads=1).median_ms > 0
        assert "merge-exponentials" in str(exponentials.report(seconds=0.01).to_dict())
        assert exponentials.compile() is not None
    assert count(exponentials.optimize(), "exp") == 2
    strict = tenon.load("builtin:tiny")
    with tenon.using(merge):
        assert count(exponentials.optimize("strict"), "exp") == 2  # a rule that reassociates is not allowed then
        assert strict.verify(samples=1)


def test_a_wrong_rule_is_caught_and_named(tmp_path):
    wrong = tenon.Rule("subtract", pattern=lambda x, y: ops.exp(x) * ops.exp(y),
                       replacement=lambda x, y: ops.exp(x - y))
    with tenon.using(wrong):
        verification = exponentials.verify(samples=1)
        assert not verification and "FAILED" in str(verification)
        culprit = exponentials.bisect()
        assert (culprit.rule, culprit.pass_name, culprit.level) == ("subtract", "subtract", "portable")
        model, inputs = culprit.save(tmp_path / "culprit.onnx")
        assert tenon.load(model).bisect() is not None
        assert inputs.endswith(".npz")


def test_an_exception_in_a_rule_leaves_with_its_traceback():
    def fail(x, y):
        raise KeyError("mine")

    failing = tenon.Rule("failing", pattern=lambda x, y: ops.exp(x) * ops.exp(y), replacement=fail)
    with tenon.using(failing), pytest.raises(KeyError, match="mine") as caught:
        exponentials.optimize()
    assert caught.value.__notes__ == ["in the replacement of the rule failing"]
    assert caught.traceback[-1].name == "fail"
    exponentials.optimize()


def test_a_replacement_may_decline():
    none = tenon.Rule("none", pattern=lambda x, y: ops.exp(x) * ops.exp(y), replacement=lambda x, y: None)
    with tenon.using(none):
        assert count(exponentials.optimize(), "exp") == 2


def test_mistakes_in_rules_are_errors():
    with pytest.raises(tenon.UserError, match="numerics"):
        tenon.Rule("r", pattern=lambda x: x, replacement=lambda x: x, numerics="exact")
    with pytest.raises(tenon.UserError, match="at least one"):
        tenon.Rule("r", pattern=lambda: 1, replacement=lambda: 1)
    for name in ("simplify", "multiply-by-one"):  # a pass and a rule that are there
        rule = tenon.Rule(name, pattern=lambda x: ops.exp(x), replacement=lambda x: ops.exp(x))
        with tenon.using(rule), pytest.raises(tenon.UserError, match="already"):
            exponentials.optimize()
    with tenon.using(tenon.Rule("r", pattern=lambda x: ops.exp(x), replacement=lambda x: 3)):
        with pytest.raises(tenon.UserError, match="returns a int"):
            exponentials.optimize()
    with tenon.using(merge, merge), pytest.raises(tenon.UserError, match="already"):
        exponentials.optimize()


def test_a_pass_edits_the_graph():
    model = tenon.trace(lambda x: ops.relu(ops.relu(x)), "f32[4]")
    with tenon.using(relu_once):
        small = model.optimize(passes=["relu-once"])
        assert count(small, "relu") == 1 and small.optimization.rewrites[0]["numerics"] == "bit-exact"
        assert model.verify(samples=1)


def test_a_pass_that_is_wrong_is_named():
    @tenon.graph_pass(name="drop-relu")
    def drop(graph, journal):
        for node in graph.nodes:
            if node.target == ops.relu and journal.is_open:
                journal.applied("drop-relu", [node], "bit-exact")
                node.replace_all_uses_with(node.args[0])
        graph.eliminate_dead_code()

    with tenon.using(drop):
        assert tenon.load("builtin:tiny").bisect().rule == "drop-relu"


def test_an_exception_in_a_pass_leaves_with_its_traceback():
    @tenon.graph_pass(name="failing-pass")
    def fail(graph, journal):
        graph.nodes[0].replace_all_uses_with(graph.nodes[1])  # half of what it is about
        raise KeyError("mine")

    before = str(exponentials)
    for use in (exponentials.optimize, exponentials.verify, exponentials.compile, exponentials.bisect):
        with tenon.using(fail), pytest.raises(KeyError, match="mine") as caught:
            use()
        assert caught.value.__notes__ == ["in the pass failing-pass"] and caught.traceback[-1].name == "fail"
    assert str(exponentials) == before and exponentials.verify(samples=1)


def test_handles_outlive_what_they_stand_for():
    kept = []

    @tenon.graph_pass
    def keep(graph, journal):
        kept.extend([graph, graph.nodes[0], graph.nodes[1], journal])

    with tenon.using(keep):
        exponentials.optimize()
    for use in (lambda: kept[0].nodes, lambda: kept[1].op, lambda: kept[2].type, lambda: kept[3].is_open,
                lambda: ops.relu(kept[2]), lambda: kept[1].name, lambda: kept[2].users):
        with pytest.raises(tenon.UserError):
            use()


def test_ops():
    assert ops.relu == ops.relu and ops.relu != ops.exp and repr(ops.relu) == "ops.relu"
    assert "softmax" in dir(ops) and "axis" in ops.softmax.__doc__
    with pytest.raises(AttributeError, match="no op"):
        ops.nothing
    with pytest.raises(tenon.UserError, match="tenon.Node"):
        ops.relu(3)
    with pytest.raises(tenon.UserError, match="axs"):
        tenon.trace(lambda x: ops.softmax(x, axs=1), "f32[2,2]")
    with pytest.raises(tenon.UserError, match="axis"):
        tenon.trace(lambda x: ops.softmax(x, axis="one"), "f32[2,2]")
    with pytest.raises(tenon.UserError, match="operands"):
        tenon.trace(lambda x: ops.relu(x, x), "f32[2,2]")
