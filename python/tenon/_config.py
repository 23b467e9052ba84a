import sys

from tenon import _tenon


def show_config() -> None:
    """Prints the version, what is built in, and the Python it runs in."""
    print(_tenon.describe_build())
    print(f"python: {sys.version.split()[0]}")
    for name in ("numpy", "torch", "onnx"):
        module = sys.modules.get(name)
        print(f"{name}: {getattr(module, '__version__', 'unknown version') if module else 'not imported'}")
