"""Writes small graphs that are built like those which papers on equality saturation of tensor graphs report on, in
Tenon's text form: a transformer, a recurrent cell found by search, and three convolutional networks.

    bench/saturation/graphs.py DIR [TENON]

With a tenon program, it also says how many nodes each has, how many the pipeline leaves, and how many it leaves with
saturation, with the seconds that took.
"""

import json
import pathlib
import random
import subprocess
import sys


class Graph:
    def __init__(self, name, *inputs):
        self.name, self.inputs, self.lines = name, inputs, []
        self.random = random.Random(name)

    def value(self, text):
        self.lines.append(f"%{len(self.lines)} = {text}")
        return f"%{len(self.lines) - 1}"

    def op(self, op, *operands, **attributes):
        given = "".join(f", {name}={value}" for name, value in attributes.items())
        return self.value(f"{op}({', '.join(operands)}{given})")

    def weight(self, *shape):
        count = 1
        for size in shape:
            count *= size
        numbers = ", ".join(f"{self.random.gauss(0, count ** -0.25):.4g}" for _ in range(count))
        sizes = ",".join(map(str, shape))
        return self.value(f'parameter(name="w{len(self.lines)}", value=f32[{sizes}] {{{numbers}}})')

    def ints(self, *numbers):
        return self.value(f"constant(value=i64[{len(numbers)}] {{{', '.join(map(str, numbers))}}})")

    def number(self, number):
        return self.value(f"constant(value=f32[] {{{number}}})")

    def text(self, *outputs):
        return f"graph {self.name}({', '.join(self.inputs)}) {{\n  " + "\n  ".join(self.lines) + \
            f"\n  return {', '.join(outputs)}\n}}\n"

    def conv(self, x, channels, filters, size, stride=1, groups=1, relu=True):
        pad = size // 2
        y = self.op("conv", x, self.weight(filters, channels // groups, size, size), pads=[pad] * 4,
                    strides=[stride, stride], groups=groups)
        y = self.op("add", y, self.weight(filters, 1, 1))
        return self.op("relu", y) if relu else y

    def layer_norm(self, x, size):
        mean = self.op("reduce_mean", x, axes=[-1], keep_dims="true")
        centred = self.op("sub", x, mean)
        variance = self.op("reduce_mean", self.op("mul", centred, centred), axes=[-1], keep_dims="true")
        scale = self.op("sqrt", self.op("add", variance, self.number(1e-5)))
        y = self.op("div", centred, scale)
        return self.op("add", self.op("mul", y, self.weight(size)), self.weight(size))


def bert(layers=2, length=8, size=16, heads=2):
    graph = Graph("bert", f"%x: f32[1,{length},{size}]")
    x = "%x"

    def dense(x, inputs, outputs):
        return graph.op("add", graph.op("matmul", x, graph.weight(inputs, outputs)), graph.weight(outputs))

    def split_heads(x):
        x = graph.op("reshape", x, graph.ints(1, length, heads, size // heads))
        return graph.op("transpose", x, permutation=[0, 2, 1, 3])

    for _ in range(layers):
        q, k, v = (split_heads(dense(x, size, size)) for _ in range(3))
        scores = graph.op("matmul", q, graph.op("transpose", k, permutation=[0, 1, 3, 2]))
        scores = graph.op("softmax", graph.op("div", scores, graph.number((size // heads) ** 0.5)), axis=-1)
        y = graph.op("transpose", graph.op("matmul", scores, v), permutation=[0, 2, 1, 3])
        y = graph.op("reshape", y, graph.ints(1, length, size))
        x = graph.layer_norm(graph.op("add", dense(y, size, size), x), size)
        y = graph.op("relu", dense(x, size, 4 * size))
        x = graph.layer_norm(graph.op("add", dense(y, 4 * size, size), x), size)
    first = graph.op("slice", x, graph.ints(0), graph.ints(1), axes=[1])
    first = graph.op("squeeze", first, axes=[1])
    return graph.text(graph.op("tanh", dense(first, size, size)))


def nasrnn(steps=2, size=16):
    graph = Graph("nasrnn", *(f"%x{i}: f32[1,{size}]" for i in range(steps)), f"%h: f32[1,{size}]")
    h = "%h"
    for step in range(steps):
        x = f"%x{step}"

        def gate(function):
            both = [graph.op("matmul", each, graph.weight(size, size)) for each in (x, h)]
            return graph.op(function, graph.op("add", *both))

        gates = [gate(f) for f in ("relu", "sigmoid", "sigmoid", "tanh", "sigmoid", "tanh", "sigmoid", "relu")]
        a = graph.op("tanh", graph.op("add", gates[0], gates[1]))
        b = graph.op("tanh", graph.op("add", gates[2], gates[3]))
        c = graph.op("sigmoid", graph.op("mul", gates[4], gates[5]))
        d = graph.op("tanh", graph.op("mul", gates[6], gates[7]))
        h = graph.op("tanh", graph.op("mul", graph.op("tanh", graph.op("add", a, b)), graph.op("mul", c, d)))
    return graph.text(h)


def resnext(blocks=3, channels=16, groups=4, image=8):
    graph = Graph("resnext50", f"%x: f32[1,{channels},{image},{image}]")
    x = "%x"
    for _ in range(blocks):
        y = graph.conv(x, channels, channels // 2, 1)
        y = graph.conv(y, channels // 2, channels // 2, 3, groups=groups)
        y = graph.conv(y, channels // 2, channels, 1, relu=False)
        x = graph.op("relu", graph.op("add", y, x))
    return graph.text(x)


def nasnet(cells=2, channels=8, image=8):
    graph = Graph("nasnet_a", f"%x: f32[1,{channels},{image},{image}]")

    def separable(x, size):
        for _ in range(2):
            x = graph.op("relu", x)
            x = graph.op("conv", x, graph.weight(channels, 1, size, size), pads=[size // 2] * 4, strides=[1, 1],
                         groups=channels)
            x = graph.conv(x, channels, channels, 1, relu=False)
        return x

    def pool(x):
        return graph.op("average_pool", x, kernel=[3, 3], pads=[1] * 4, strides=[1, 1])

    before, x = "%x", "%x"
    for _ in range(cells):
        a = graph.conv(graph.op("relu", x), channels, channels, 1, relu=False)
        b = graph.conv(graph.op("relu", before), channels, channels, 1, relu=False)
        parts = [graph.op("add", separable(a, 5), separable(b, 3)),
                 graph.op("add", separable(b, 5), separable(b, 3)),
                 graph.op("add", pool(a), b),
                 graph.op("add", pool(b), pool(b)),
                 graph.op("add", separable(a, 3), a)]
        y = graph.value(f"concat([{', '.join([b, *parts])}], axis=1)")
        before, x = x, graph.conv(y, 6 * channels, channels, 1, relu=False)
    return graph.text(x)


def inception(blocks=2, channels=16, image=8):
    graph = Graph("inception_v3", f"%x: f32[1,{channels},{image},{image}]")
    x = "%x"
    for _ in range(blocks):
        ones = graph.conv(x, channels, channels // 4, 1)
        fives = graph.conv(graph.conv(x, channels, channels // 4, 1), channels // 4, channels // 4, 5)
        threes = graph.conv(graph.conv(x, channels, channels // 4, 1), channels // 4, channels // 4, 3)
        pooled = graph.op("average_pool", x, kernel=[3, 3], pads=[1] * 4, strides=[1, 1])
        pooled = graph.conv(pooled, channels, channels // 4, 1)
        x = graph.value(f"concat([{ones}, {fives}, {threes}, {pooled}], axis=1)")
    return graph.text(x)


GRAPHS = {"bert": bert, "nasrnn": nasrnn, "resnext50": resnext, "nasnet_a": nasnet, "inception_v3": inception}


def optimised(tenon, path, *options):
    done = subprocess.run([tenon, "optimize", path, "--stats", "-", *options], check=True, capture_output=True)
    return json.loads(done.stdout)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) > 2:
        print(f"{'graph':<14} {'nodes':>6} {'pipeline':>9} {'saturated':>10} {'seconds':>8}")
    for name, build in GRAPHS.items():
        path = folder / f"{name}.tenon"
        path.write_text(build())
        if len(sys.argv) > 2:
            plain = optimised(sys.argv[2], path)
            saturated = optimised(sys.argv[2], path, "--saturate", "60")
            seconds = sum(each["ms"] for each in saturated["passes"] if each["name"] == "saturate") / 1000
            print(f"{name:<14} {plain['nodes_before']:>6} {plain['nodes_after']:>9} {saturated['nodes_after']:>10} "
                  f"{seconds:>8.2f}")


if __name__ == "__main__":
    main()
