"""example_report — data of reports as `tenon report` writes it, small or with parts missing, to test the page with."""


class Builder:
    """Collects strings and nodes, which the data names by number."""

    def __init__(self):
        self.strings = []
        self.nodes = []

    def text(self, text):
        if text not in self.strings:
            self.strings.append(text)
        return self.strings.index(text)

    def node(self, op, name, inputs, module="", kind="compute", **more):
        self.nodes.append({
            "op": self.text(op), "name": self.text(name), "type": self.text("f32[4,8]"), "inputs": inputs,
            "module": self.text(module), "sources": [self.text(name)], "kind": kind, **more})
        return len(self.nodes) - 1


def whole():
    """Two modules, an `if` with a nested graph, a pass that fuses, one that does nothing; names that try to be HTML."""
    b = Builder()
    x = b.node("input", "x", [], kind="input")
    weight = b.node("parameter", "block/a.weight", [], "block/a", "parameter")
    turned = b.node("transpose", "/block/a/Transpose", [weight], "block/a")  # of a weight, so it is one
    product = b.node("matmul", "/block/a/MatMul", [x, turned], "block/a")
    bias = b.node("add", "/block/a/</script><b>Add", [product, weight], "block/a")
    relu = b.node("relu", "/block/b/Relu", [bias], "block/b")
    choice = b.node("if", "/block/b/If", [relu], "block/b", "control")
    inner = b.node("neg", "/block/b/If/Neg", [], "block/b", **{"in": choice})
    y = b.node("output", "y", [[choice, 0]], kind="output")
    sources = [b.text("/block/a/MatMul"), b.text("/block/a/</script><b>Add")]
    fused = b.node("linear", "linear", [x, turned], "block/a", sources=sources)
    kernel = {"kind": "kernel", "module": b.text("block/a"), "reads": ["f32[4,8]"], "writes": ["f32[4,8]"]}
    return {
        "version": "0.1.0", "model": "example <i>model</i>",
        "machine": {"name": "a machine", "cores": 2, "threads": 2, "features": "", "peak_gflops": 100.0,
                    "bandwidths": [{"name": "L1", "gbps": 200.0}, {"name": "memory", "gbps": 10.0}]},
        "summary": {"nodes_before": 8, "nodes_after": 7, "kernels": 2, "run_ms": 0.35, "outside_steps_ms": 0.05,
                    "compile_ms": 5.0, "arena_bytes": 4096, "arena_lower_bound": 4000, "runs": 10, "parameters": 64},
        "stages": [
            {"name": "as read", "nodes": 8, "added": [x, weight, turned, product, bias, relu, choice, inner, y], "removed": [],
             "rewired": [], "fixed": [weight, turned]},
            {"name": "fuse-bias", "milliseconds": 0.1, "changes": 1, "nodes": 7, "added": [fused],
             "removed": [product, bias], "rewired": [[relu, [fused]]], "retyped": [[relu, b.text("bf16[4,8]")]]}],
        "passes": [{"pass": "fold", "round": 1, "milliseconds": 0.2, "changes": 0, "nodes": 8},
                   {"pass": "fuse-bias", "round": 1, "milliseconds": 0.1, "changes": 1, "nodes": 7}],
        "rewrites": [{"stage": 1, "rule": b.text("bias"), "removed": [b.text("/block/a/MatMul")]}],
        "remarks": [{"pass": b.text("fuse"), "node": b.text("/block/b/Relu"), "text": b.text("it has two users"),
                     "microseconds": 3.5}],
        "kernels": [
            {**kernel, "name": "linear_0", "nodes": [fused], "sources": [b.text("/block/a/MatMul")], "milliseconds": 0.2,
             "share": 0.57, "flops": 512, "bytes": 400, "gflops": 2.5, "gbps": 2.0, "ceiling": 0.3, "loops": 0},
            {**kernel, "name": "relu_1", "nodes": [relu], "sources": [b.text("/block/b/Relu")],
             "module": b.text("block/b"), "milliseconds": 0.1, "share": 0.29, "flops": 32, "bytes": 256, "gflops": 0.3,
             "gbps": 2.5, "ceiling": 1.2, "loops": 1}],
        "loops": [{"before": "for i in 0..4 {}", "after": "parallel for i in 0..4 {}"}, {"after": "for i in 0..32 {}"}],
        "missed": [{"from": 0, "to": 1, "buffer": "f32[4,8]", "reason": "the buffer is also an output",
                    "microseconds": 12.0}],
        "memory": {"lower_bound": 4000, "arena": 4096, "live": [1000, 4000, 2000],
                   "tensors": [{"name": "linear", "type": "f32[4,8]", "bytes": 3000, "offset": 0, "from": 0, "to": 1},
                               {"name": "relu", "type": "f32[4,8]", "bytes": 1000, "offset": 3000, "from": 1, "to": 2}]},
        "modules": [{"module": "block/a", "milliseconds": 0.2, "kernels": 1},
                    {"module": "block/b", "milliseconds": 0.1, "kernels": 1}],
        "verification": [{"level": "portable", "pass": "fuse-bias", "changes": 1, "numbers": "ok", "difference": 1e-7, "gradients": "ok",
                          "gradient_difference": 2e-6, "lint": "ok", "parameters": "ok"}],
        "strings": b.strings, "nodes": b.nodes}


def flat(count):
    """A chain of many nodes that no module holds."""
    b = Builder()
    last = b.node("input", "x", [], kind="input")
    for i in range(count):
        last = b.node("relu", f"relu_{i}", [last])
    return {"model": "flat", "strings": b.strings, "nodes": b.nodes,
            "stages": [{"name": "as read", "nodes": count + 1, "added": list(range(count + 1))}]}


def reports():
    """Each by a name that says what is special about it."""
    one = flat(0)
    untimed = whole()
    for kernel in untimed["kernels"]:
        for key in ("milliseconds", "share", "flops", "bytes", "gflops", "gbps", "ceiling", "loops"):
            del kernel[key]
    for key in ("machine", "summary", "remarks", "missed", "memory", "modules", "verification", "loops"):
        del untimed[key]
    in_place = whole()
    in_place["memory"] = {"lower_bound": 0, "arena": 0, "live": [0, 0], "tensors": []}
    return {"whole": whole(), "in-place": in_place, "flat": flat(700), "one-node": one,
            "nothing": {"model": "nothing"}, "untimed": untimed}
