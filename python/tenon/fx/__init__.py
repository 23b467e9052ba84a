"""torch.fx's own names, with modules that Tenon verifies, measures and explains.

    from tenon.fx import symbolic_trace

    traced = symbolic_trace(module)            # a torch.fx.GraphModule
    traced.verify_against(module, (x,))        # after a pass: numbers, gradients, form and parameters

Everything that is not here is torch.fx's, its modules included: tenon.fx.passes.shape_prop is torch.fx.passes.shape_prop.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from typing import Any

import torch.fx

from tenon.fx._traced import TracedModule, Transformer, symbolic_trace

__all__ = ["TracedModule", *torch.fx.__all__]


class _Mirror(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds tenon.fx.NAME as torch.fx.NAME: one module under two names."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        package, _, rest = fullname.partition("tenon.fx.")
        if package or not rest or rest.startswith("_"):
            return None
        try:
            found = importlib.util.find_spec(f"torch.fx.{rest}")
        except ModuleNotFoundError:
            return None
        return None if found is None else importlib.machinery.ModuleSpec(fullname, self, is_package=found.submodule_search_locations is not None)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Any:
        module = importlib.import_module(spec.name.replace("tenon.fx.", "torch.fx.", 1))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: Any) -> None:
        # Importing gives a module the spec by which it was found; this one keeps its own.
        module.__spec__ = module.__spec__.loader_state


sys.meta_path.insert(0, _Mirror())


def __getattr__(name: str) -> Any:
    if not name.startswith("__") and hasattr(torch.fx, name):
        found = getattr(torch.fx, name)
        # A module of torch.fx is one of ours too, so that import statements find it.
        return importlib.import_module(f"tenon.fx.{name}") if isinstance(found, type(torch)) and found.__name__ == f"torch.fx.{name}" else found
    try:
        return importlib.import_module(f"tenon.fx.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"neither tenon.fx nor torch.fx has {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(torch.fx)})
