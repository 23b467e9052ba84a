"""jax_peer.py — XLA as a peer, called by JAX. jaxonnxruntime makes a JAX function of the ONNX file."""

import os

import onnx
from peer import main


def load(path, inputs, threads):
    # XLA has a thread for each core that the process may use, which it counts when JAX is imported.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    import jax
    from jaxonnxruntime import call_onnx, config

    config.update("jaxort_only_allow_initializers_as_static_args", False)
    model = onnx.load(path)
    function, weights = call_onnx.call_onnx_model(model, inputs)
    compiled = jax.jit(function).lower(weights, inputs).compile()
    weights, inputs = jax.device_put((weights, inputs))
    return (lambda: jax.block_until_ready(compiled(weights, inputs)),
            lambda results: {port.name: result for port, result in zip(model.graph.output, results, strict=True)})


if __name__ == "__main__":
    main(__doc__, load)
