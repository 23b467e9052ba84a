"""openvino_peer.py — OpenVINO (the PyPI package openvino) as a peer. It computes in f32, where it would take bf16 on processors
that have it."""

import openvino
from peer import main


def load(path, inputs, threads):
    core = openvino.Core()
    model = core.read_model(path)
    if any(port.partial_shape.is_dynamic for port in model.inputs):
        model.reshape({port: list(inputs[port.any_name].shape) for port in model.inputs})
    compiled = core.compile_model(model, "CPU", {
        "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32",
    })
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        request.set_tensor(port, openvino.Tensor(inputs[port.any_name]))
    return request.infer, lambda _: {port.any_name: request.get_tensor(port).data for port in compiled.outputs}


if __name__ == "__main__":
    main(__doc__, load)
