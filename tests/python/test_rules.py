"""Rules, passes and graphs written in Python."""

import numpy as np
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


def rule(pattern, replacement, **options):
    return tenon.Rule("rule", pattern=pattern, replacement=replacement, **options)


def test_a_right_rule_verifies():
    verification = merge.verify()
    assert verification and verification.verdict == "ok" and verification.counterexample is None
    assert verification.graphs > 20 and verification.samples > verification.graphs
    assert verification.dtypes == ["f32", "f64", "f16", "bf16"]
    assert str(verification).startswith("merge-exponentials: (exp(x0) * exp(x1)) => exp((x0 + x1))\nok as reassociates, for ")


def test_a_rule_verifies_for_the_tensors_that_its_pattern_takes():
    integers = rule(lambda x, y: x + y - y + x, lambda x, y: x + x + (y - y))
    assert "i64" in integers.verify().dtypes
    assert rule(lambda x, y: ops.log(x) + ops.log(y), lambda x, y: ops.log(x * y)).verify()  # where x is positive
    assert rule(lambda x: x * 1.0, lambda x: x, numerics="bit-exact").verify()
    product = rule(lambda x, y, z: (x @ y) @ z, lambda x, y, z: x @ (y @ z), types=["f32[m,k]", "f32[k,n]", "f32[n,8]"])
    assert product.verify().dtypes == ["f32", "f64", "f16", "bf16"]


def test_a_wrong_rule_shows_a_counterexample():
    verification = rule(lambda x, y: ops.exp(x) * ops.exp(y), lambda x, y: ops.exp(x - y)).verify()
    assert not verification and verification.holds_as is None
    found = verification.counterexample
    x, y = (np.asarray(each) for each in found.inputs)
    assert np.allclose(found.expected[0], np.exp(x + y), rtol=1e-5) and np.allclose(found.actual[0], np.exp(x - y), rtol=1e-5)
    assert np.allclose(found.before.compile()(x, y), np.exp(x + y), rtol=1e-5)
    assert "sub" in str(found.after)
    text = str(verification)
    assert "FAILED as reassociates: element 0" in text and "expected: f32[1] = [" in text and "before:\ngraph" in text
    # Each of these is right for what one tries first.
    assert not rule(lambda x: ops.abs(x), lambda x: ops.relu(x)).verify()
    assert not rule(lambda x: ops.softmax(x, axis=0), lambda x: ops.softmax(x, axis=-1)).verify()
    assert not rule(lambda x, y: ops.log(x * y), lambda x, y: ops.log(x) + ops.log(y)).verify()
    assert not rule(lambda x: x * 0.0, lambda x: x - x, numerics="bit-exact").verify()  # -1 * 0 is -0


def test_a_rule_that_promises_too_much_is_told_what_holds():
    verification = rule(lambda x, y: ops.exp(x) * ops.exp(y), lambda x, y: ops.exp(x + y), numerics="bit-exact").verify()
    assert not verification and verification.holds_as == "reassociates"
    assert str(verification).endswith("It holds as reassociates.\n")


def test_a_replacement_that_does_not_fit_is_a_counterexample():
    verification = rule(lambda x, y: (x + y) - y, lambda x, y: x + 0.0).verify()
    assert not verification and verification.counterexample.after is None and verification.counterexample.actual == []
    assert "the result would be f32[" in str(verification) and "it may return none" in str(verification)
    fitting = rule(lambda x, y: (x + y) - y, lambda x, y: x + 0.0 if x.shape == y.shape else None)
    assert fitting.verify(tolerance=1e-2)


def test_what_cannot_be_verified_is_unknown():
    declining = rule(lambda x: ops.exp(x), lambda x: None).verify()
    assert not declining and declining.verdict == "unknown" and "give types for its inputs" in str(declining)

    def only_of_many(x):
        if x.shape is not None and len(x.shape) != 5:
            raise ValueError("five dimensions, please")
        return ops.exp(x)

    never_traced = rule(only_of_many, lambda x: ops.exp(x)).verify()
    assert never_traced.verdict == "unknown" and "five dimensions, please" in never_traced.detail
    assert rule(only_of_many, lambda x: ops.exp(x), types=["f32[1,1,n,1,1]"]).verify()


def test_mistakes_in_a_rule_leave_its_verification():
    def fail(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        rule(lambda x: ops.exp(x), fail).verify()
    assert caught.value.__notes__ == ["in the replacement of the rule rule"]
    with pytest.raises(tenon.UserError, match="is no op, but an input"):
        rule(lambda x: x, lambda x: x).verify()


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


def test_none_is_no_node():
    for function in (lambda x: None, lambda x: [None], lambda x: (ops.exp(x), None)):
        with pytest.raises(tenon.UserError, match="returns None"):
            tenon.trace(function, "f32[4]")
    with tenon.using(tenon.Rule("r", pattern=lambda x: None, replacement=lambda x: x)):
        with pytest.raises(tenon.UserError, match="returns None"):
            exponentials.optimize()


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
