"""Tenon compiles machine-learning models: ONNX files, PyTorch modules and exports, and graphs written in Python.

    import tenon

    net = tenon.compile("model.onnx")
    y = net(x)
"""

from tenon._model import Benchmark, Culprit, Model, Optimization, Port, Report, Verification, compile, load, trace
from tenon._added_ops import add_op
from tenon._check import PassChecks, Timings, benchmark, verify_pass
from tenon._passes import Pass, Rule, RuleVerification, graph_pass, using
from tenon._tenon import Array, Graph, Journal, Node, Program, Value
from tenon._tenon import version as _version
from tenon.errors import Error, InternalError, UnsupportedError, UserError
from tenon.training import TrainStep, train_step
from tenon._config import show_config
from tenon import _graph, ops
from tenon._graph import TensorType

__version__ = _version()

__all__ = [
    "Array", "Benchmark", "Culprit", "Error", "Graph", "InternalError", "Journal", "Model", "Node", "Optimization", "Pass", "PassChecks", "Port",
    "Program", "Report", "Rule", "RuleVerification", "TensorType", "Timings", "TrainStep", "UnsupportedError", "UserError", "Value",
    "Verification", "add_op", "benchmark", "compile", "graph_pass",
    "load", "ops", "show_config", "trace", "train_step", "using", "verify_pass",
]
