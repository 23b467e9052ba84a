"""session.py MODEL — runs a model in ONNX Runtime, its graph by Tenon."""

import os
import sys

import numpy
import onnxruntime

onnxruntime.register_execution_provider_library("tenon", os.path.abspath("build/libtenon_ep.so"))

options = onnxruntime.SessionOptions()
devices = [each for each in onnxruntime.get_ep_devices() if each.ep_name == "TenonExecutionProvider"]
options.add_provider_for_devices(devices, {"threads": "2"})
session = onnxruntime.InferenceSession(sys.argv[1], options)

print(session.get_providers())
inputs = {port.name: numpy.ones([1 if isinstance(size, str) else size for size in port.shape], "f") for port in session.get_inputs()}
for output, array in zip(session.get_outputs(), session.run(None, inputs)):
    print(output.name, array.shape, array.round(4).tolist())
