"""torch_peer.py — torch.compile (PyTorch's Inductor) as a peer. onnx2torch makes a module of the ONNX file, whose weights are
frozen, so that Inductor may fold and pack them."""

import onnx
import onnx2torch
import torch
import torch._inductor.config
from peer import main


def load(path, inputs, threads):
    torch.set_num_threads(threads)
    torch._inductor.config.freezing = True
    model = onnx.load(path)
    module = torch.compile(onnx2torch.convert(model).eval())
    weights = {each.name for each in model.graph.initializer}
    arguments = [torch.from_numpy(inputs[port.name]) for port in model.graph.input if port.name not in weights]

    def run():
        with torch.no_grad():
            return module(*arguments)

    def named(results):
        results = results if isinstance(results, (list, tuple)) else [results]
        return {port.name: result.numpy() for port, result in zip(model.graph.output, results, strict=True)}

    run()  # compiles
    return run, named


if __name__ == "__main__":
    main(__doc__, load)
