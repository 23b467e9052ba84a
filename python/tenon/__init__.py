"""Tenon compiles machine-learning models: ONNX files, PyTorch modules and exports, and graphs written in Python.

    import tenon

    net = tenon.compile("model.onnx")
    y = net(x)
"""

from tenon._model import Benchmark, Culprit, Model, Optimization, Report, Verification, compile, load, trace
from tenon._passes import Pass, Rule, RuleVerification, graph_pass, using
from tenon._tenon import Array, Graph, Journal, Node, Program, Value
from tenon._tenon import version as _version
from tenon.errors import Error, InternalError, UnsupportedError, UserError
from tenon._config import show_config
from tenon import _graph, ops
from tenon._graph import TensorType

TYPE_CHECKING = False  # for those who check types it is true; importing typing takes as long as all of Tenon
if TYPE_CHECKING:
    from tenon._added_ops import add_op
    from tenon._check import PassChecks, Timings, benchmark, verify_pass
    from tenon._records import Port
    from tenon.training import TrainStep, train_step
else:
    # Where to find what is imported when it is first asked for: what these modules import takes longer than the rest.
    _LATE = {"add_op": "_added_ops", "PassChecks": "_check", "Timings": "_check", "benchmark": "_check", "verify_pass": "_check",
             "Port": "_records", "TrainStep": "training", "train_step": "training"}  # fmt: skip

    def __getattr__(name):
        if name not in _LATE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        found = globals()[name] = getattr(import_module(f"tenon.{_LATE[name]}"), name)
        return found

    def __dir__():
        return sorted({*globals(), *_LATE})


__version__ = _version()

__all__ = [
    "Array", "Benchmark", "Culprit", "Error", "Graph", "InternalError", "Journal", "Model", "Node", "Optimization", "Pass", "PassChecks", "Port",
    "Program", "Report", "Rule", "RuleVerification", "TensorType", "Timings", "TrainStep", "UnsupportedError", "UserError", "Value",
    "Verification", "add_op", "benchmark", "compile", "graph_pass",
    "load", "ops", "show_config", "trace", "train_step", "using", "verify_pass",
]
