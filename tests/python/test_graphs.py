"""Tenon's graphs in the words of torch.fx."""

import gc
import operator
import sys

import numpy
import pytest

import tenon
from tenon import ops


def softened():
    return tenon.trace(lambda x: ops.relu(x) + 1.0, "f32[n,4]").graph


def test_nodes_have_the_words_of_fx():
    graph = tenon.trace(lambda x, y: ops.softmax(x @ y, axis=1) * 2.0, "f32[n,4]", "f32[4,m]").graph
    x, y, matmul, softmax, two, mul, output = graph.nodes
    assert [node.op for node in graph.nodes] == [
        "placeholder", "placeholder", "call_function", "call_function", "get_attr", "call_function", "output"]
    assert [node.name for node in graph.nodes] == ["x", "y", "matmul", "softmax", "_tensor_constant0", "mul", "output"]
    assert (x.target, matmul.target, two.target, output.target) == ("x", ops.matmul, "_tensor_constant0", "output")
    assert matmul.args == (x, y) and mul.args == (softmax, two) and output.args == (mul,) and x.args == ()
    assert softmax.kwargs == {"axis": 1} and matmul.kwargs["transpose_a"] is False
    assert list(x.users) == [matmul] and list(mul.users) == [output] and output.users == {}
    assert mul.all_input_nodes == [softmax, two] and two.elements.shape == ()
    assert (x.next, softmax.prev, x.prev, output.next) == (y, matmul, None, None)
    assert matmul.meta["val"] == "f32[n,m]" == matmul.type
    assert matmul.meta["val"].shape == ("n", "m") and matmul.meta["val"].dtype == "f32"
    assert repr(mul.args) == "(softmax, _tensor_constant0)" and "softmax" in softmax.format_node()


def test_a_node_is_one_object():
    graph = softened()
    relu = graph.nodes[1]
    assert relu is graph.nodes[1] and graph.nodes[3].args[0] is relu and relu in {relu: 1}
    relu.meta["mine"] = 7
    del relu
    gc.collect()
    assert graph.nodes[1].meta["mine"] == 7  # kept with the graph, whoever holds the node
    assert len({id(node) for node in graph.nodes}) == len(graph.nodes)


def test_nodes_kept_beside_nodes_are_let_go():
    def graphs():
        gc.collect()
        return sum(type(each) is tenon.Graph for each in gc.get_objects())

    def keep():
        graph = softened()
        for node in graph.nodes:
            node.meta["self"], node.meta["graph"] = node, graph
        assert graph.nodes[0].meta["self"] is graph.nodes[0]

    before = graphs()
    keep()
    assert graphs() == before


def test_graphs_are_edited():
    graph = softened()
    (relu,) = graph.find_nodes(op="call_function", target=ops.relu)
    with pytest.raises(tenon.UserError, match="uses it"):
        graph.erase_node(relu)
    with graph.inserting_after(relu):
        softer = graph.call_function(ops.gelu, relu.args)
    (add,) = relu.users
    assert relu.replace_all_uses_with(softer) == [add] and relu.users == {}
    graph.erase_node(relu)
    with pytest.raises(tenon.UserError, match="erased"):
        relu.op
    graph.lint()
    assert graph.recompile() is None
    model = tenon.Model.of(graph, "softer")
    assert "gelu" in str(model) and "relu" not in str(model) and model.inputs[0].type == "f32[n,4]"
    assert softer.shape == ("n", 4) and softer.dtype == "f32" and softer.target == ops.gelu
    with pytest.raises(tenon.UserError, match="another graph"):
        ops.add(softer, softened().inputs[0])
    with pytest.raises(tenon.UserError, match="another graph"):
        softer.replace_all_uses_with(softened().nodes[1])


def test_arguments_are_replaced():
    graph = tenon.trace(lambda x, y: x - y, "f32[4]", "f32[4]").graph
    x, y, sub, output = graph.nodes
    sub.replace_input_with(y, x)
    assert sub.args == (x, x)
    sub.args = (y, x)
    assert sub.args == (y, x)
    sub.update_arg(1, y)
    assert sub.args == (y, y) and x.users == {}
    with pytest.raises(tenon.UserError, match="has 2 arguments"):
        sub.args = (x,)
    with pytest.raises(tenon.UserError, match="no inputs"):
        x.replace_input_with(x, y)
    graph.erase_node(x)
    assert graph.inputs == (y,)
    with pytest.raises(tenon.UserError, match="cannot be erased"):
        graph.erase_node(output)
    with pytest.raises(tenon.UserError, match="cannot stand"):
        sub.replace_all_uses_with(graph.placeholder("z", "f32[5]"))


def test_graphs_are_made_of_their_parts():
    graph = softened()
    x, relu = graph.nodes[:2]
    y = graph.placeholder("y", "f32[4]")
    with graph.inserting_before(graph.nodes[-1]):
        weight = graph.get_attr("scale", numpy.full(4, 2, dtype="f"))
        made = graph.create_node("call_function", ops.mul, (relu, weight))
    graph.output((made, made + y))
    graph.eliminate_dead_code()
    graph.lint()
    with graph.inserting_before():
        assert graph.get_attr("scale").target == "scale" and graph.nodes[2].op == "get_attr"
    with pytest.raises(tenon.UserError, match="no parameter"):
        graph.get_attr("nothing")
    with pytest.raises(tenon.UserError, match="tenon.ops"):
        graph.call_function(numpy.add, (x, y))
    program = tenon.Model.of(graph).compile()
    first, second = program(numpy.array([[1, -1, 2, 0]], dtype="f"), numpy.ones(4, dtype="f"))
    assert first.tolist() == [[2, 0, 4, 0]] and second.tolist() == [[3, 1, 5, 1]]


def test_several_results_are_elements():
    graph = tenon.trace(lambda x: ops.top_k(x, [2], axis=1), "f32[n,4]").graph
    top = next(node for node in graph.nodes if node.target == ops.top_k)
    values, indices = top
    assert values is top[0] and indices is top[-1] and values.args == (top, 0)
    assert values.target is operator.getitem and graph.nodes[-1].args == ((values, indices),)
    assert list(top.users) == [values, indices] and top.meta["val"] == ("f32[n,2]", "i64[n,2]")
    with pytest.raises(IndexError):
        top[2]
    with pytest.raises(TypeError):
        graph.inputs[0][0]
    with pytest.raises(tenon.UserError, match="several values"):
        ops.relu(top)
    graph.output(values)
    assert list(top.users) == [values] and indices not in graph.nodes
    with pytest.raises(tenon.UserError, match="uses"):
        graph.erase_node(values)


def test_numbers_have_the_dtype_that_the_op_wants():
    graph = tenon.trace(lambda c, x: ops.where(c, 1.5, x), "bool[4]", "f16[4]").graph
    (where,) = graph.find_nodes(op="call_function")
    assert where.type == "f16[4]" and where.args[1].type == "f16[]"


def test_tables_and_code(capsys):
    graph = tenon.trace(lambda x: ops.and_(ops.split(x, [2, 2], axis=0)[0], True), "bool[4]").graph
    graph.print_tabular()
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["opcode", "name", "target", "args", "kwargs"] and "operator.getitem" not in table[0]
    assert any("ops.split" in line for line in table)
    code = graph.python_code()
    assert code.src.startswith("def forward(x):\n") and "ops.and_(" in code.src
    scope = dict(code.globals)
    exec(code.src, scope)
    again = tenon.trace(scope["forward"], "bool[4]")
    assert tenon.Model.of(graph).verify_against(again)


def test_walking_a_graph_runs_no_python():
    def chain(x):
        for _ in range(500):
            x = ops.relu(x) + x
        return x

    graph = tenon.trace(chain, "f32[n,8]").graph
    called = []

    def walk():
        for node in graph.nodes:
            node.op, node.target, node.args, node.users

    assert len(graph.nodes) > 1000
    walk()
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        walk()
    finally:
        sys.setprofile(None)
    assert called == ["walk"]
    assert all(node is again for node, again in zip(graph.nodes, graph.nodes))


def test_lists_of_numbers_are_constants():
    graph = tenon.trace(lambda x: ops.mul(ops.reshape(x, [-1, 2]), [0.5, 1]), "f16[n,4]").graph
    assert graph.outputs[0].type == "f16[2*n,2]" and graph.outputs[0].args[1].type == "f16[2]"
    with pytest.raises(tenon.UserError, match="list of str"):
        tenon.trace(lambda x: ops.reshape(x, ["n"]), "f32[n]")
