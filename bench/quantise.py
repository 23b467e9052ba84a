"""quantise.py — an ONNX model with quantised weights and activations: quantise.py MODEL.onnx OUT.onnx

Convolutions and products with constant matrices get weights of i8, with a scale for each channel, and activations of u8, with the
range that ONNX Runtime saw on made-up inputs; so do sums and averages of images between them. All is spelt with QuantizeLinear and
DequantizeLinear. It needs what bench/requirements.txt lists, as the environment of bench/peers has it.
"""
import os
import subprocess
import sys
import tempfile

import numpy
import onnx
from onnx import helper, numpy_helper

BENCH = os.path.dirname(os.path.abspath(__file__))


class Quantiser:
    def __init__(self, model):
        self.graph = model.graph
        self.constants = {each.name: each for each in self.graph.initializer}
        self.makers = {output: node for node in self.graph.node for output in node.output}
        self.new_nodes, self.renamed = [], {}

    def constant(self, name):
        """The array of that name, also where it is copied or transposed first; None of what is computed."""
        if name in self.constants:
            return numpy_helper.to_array(self.constants[name])
        node = self.makers.get(name)
        if node is None or node.op_type not in ("Identity", "Transpose"):
            return None
        array = self.constant(node.input[0])
        if node.op_type == "Identity":
            return array
        return None if array is None else array.transpose(next((each.ints for each in node.attribute if each.name == "perm"), None))

    def is_image(self, name):
        """Whether a convolution made it, be it through an activation or a sum."""
        node = self.makers.get(name)
        if node is None or node.op_type == "Conv":
            return node is not None
        return node.op_type in ("Clip", "Relu", "Add") and self.is_image(node.input[0])

    def activations(self, node):
        """Those that a node reads quantised."""
        if node.op_type in ("Conv", "MatMul", "Gemm"):
            return [] if self.constant(node.input[1]) is None else [node.input[0]]
        if node.op_type in ("Add", "GlobalAveragePool") and all(self.is_image(each) for each in node.input):
            return list(node.input)
        return []

    def all_activations(self):
        """Those, and products, to which a bias is added: ONNX Runtime multiplies integers only where the result is quantised."""
        names = []
        for node in self.graph.node:
            activations = self.activations(node)
            names += activations + (list(node.output) if activations and node.op_type == "MatMul" else [])
        return list(dict.fromkeys(names))

    def add_constant(self, name, array):
        if name not in self.constants:
            tensor = numpy_helper.from_array(array.copy(order="C"), name)
            self.constants[name] = tensor
            self.graph.initializer.append(tensor)
        return name

    def dequantised(self, name, array, scales, axis):
        if name + "_dequantised" not in self.makers:
            zeros = numpy.zeros(scales.shape, array.dtype)
            inputs = [self.add_constant(name + suffix, each)
                      for suffix, each in (("_bytes", array), ("_scale", scales), ("_zero_point", zeros))]
            node = helper.make_node("DequantizeLinear", inputs, [name + "_dequantised"], axis=axis)
            self.makers[node.output[0]] = node
            self.new_nodes.append(node)
        return name + "_dequantised"

    def quantise_weights(self, node, activation_scale):
        array = self.constant(node.input[1])
        axis = 0 if node.op_type == "Conv" or any(each.name == "transB" and each.i for each in node.attribute) else array.ndim - 1
        others = tuple(i for i in range(array.ndim) if i != axis)
        scales = (numpy.maximum(numpy.abs(array).max(axis=others), 1e-8) / 127).astype(numpy.float32)
        steps = scales.reshape([-1 if i == axis else 1 for i in range(array.ndim)])
        node.input[1] = self.dequantised(node.input[1], numpy.rint(array / steps).clip(-127, 127).astype(numpy.int8), scales, axis)
        if len(node.input) > 2 and self.constant(node.input[2]) is not None:
            bias_scales = (activation_scale * scales).astype(numpy.float32)
            bias = numpy.rint(self.constant(node.input[2]) / bias_scales).astype(numpy.int32)
            node.input[2] = self.dequantised(node.input[2], bias, bias_scales, 0)

    def quantise_activation(self, name, least, greatest):
        least, greatest = min(least, 0.0), max(greatest, 0.0)
        scale = numpy.float32(max(greatest - least, 1e-8) / 255)
        zero_point = numpy.uint8(numpy.clip(numpy.rint(-least / scale), 0, 255))
        parameters = [self.add_constant(name + "_scale", numpy.array(scale)),
                      self.add_constant(name + "_zero_point", numpy.array(zero_point))]
        self.renamed[name] = (name + "_dequantised", scale)
        return [helper.make_node("QuantizeLinear", [name] + parameters, [name + "_quantised"]),
                helper.make_node("DequantizeLinear", [name + "_quantised"] + parameters, [name + "_dequantised"])]

    def run(self, ranges):
        nodes = []
        for name in (each.name for each in self.graph.input):
            if name in ranges:
                nodes += self.quantise_activation(name, *ranges[name])
        for node in list(self.graph.node):
            activations = self.activations(node)
            self.new_nodes = []
            if activations and node.op_type in ("Conv", "MatMul", "Gemm"):
                self.quantise_weights(node, self.renamed[node.input[0]][1])
            for i, name in enumerate(node.input):
                if name in self.renamed:
                    node.input[i] = self.renamed[name][0]
            nodes += self.new_nodes + [node]
            for name in node.output:
                if name in ranges:
                    nodes += self.quantise_activation(name, *ranges[name])
        used = {name for node in nodes for name in node.input} | {each.name for each in self.graph.output}
        nodes = [node for node in nodes if any(name in used for name in node.output)]
        used = {name for node in nodes for name in node.input}
        kept = [each for each in self.graph.initializer if each.name in used]
        for field, values in (("node", nodes), ("initializer", kept)):
            self.graph.ClearField(field)
            getattr(self.graph, field).extend(values)


def find_ranges(model, names):
    """The least and the greatest number of each activation, as ONNX Runtime computes them."""
    with tempfile.TemporaryDirectory() as folder:
        seen = onnx.ModelProto()
        seen.CopyFrom(model)
        seen.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names
                                 if name not in {each.name for each in seen.graph.input})
        paths = [os.path.join(folder, name) for name in ("seen.onnx", "in.npz", "out.npz")]
        onnx.save(seen, paths[0])
        engine = [sys.executable, os.path.join(BENCH, "ort.py")]
        subprocess.run([*engine, "inputs", paths[0], "--inputs", paths[1]], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*engine, "run", paths[0], "--inputs", paths[1], "--outputs", paths[2]], check=True, stdout=subprocess.DEVNULL)
        arrays = {**numpy.load(paths[1]), **numpy.load(paths[2])}
    return {name: (float(arrays[name].min()), float(arrays[name].max())) for name in names}


def main():
    if len(sys.argv) != 3:
        sys.exit("quantise.py MODEL.onnx OUT.onnx")
    model = onnx.load(sys.argv[1])
    quantiser = Quantiser(model)
    quantiser.run(find_ranges(model, quantiser.all_activations()))
    onnx.save(model, sys.argv[2])


if __name__ == "__main__":
    main()
