"""torch_peer.py — PyTorch as bench/gpu/run peers times it: eager, torch.compile, and torch.compile that replays CUDA graphs.

A time is the median of calls on inputs that are on the device, twice: between CUDA events around each call, which are queued one
behind the other; and by the host's clock, waiting for the device after each call, as tenon bench does it.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

Call = Callable[..., Any]
WAYS: dict[str, Callable[[Call], Call]] = {
    "eager": lambda call: call,
    "compile": torch.compile,
    "reduce": lambda call: torch.compile(call, mode="reduce-overhead"),
}


def set_up() -> str:
    """Products in f32, not TF32, as Tenon's are. Returns the versions."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    return f"torch {torch.__version__}, CUDA {torch.version.cuda}"


def median(numbers: list[float]) -> float:
    return sorted(numbers)[len(numbers) // 2]


def measure(call: Call, inputs: list[Any], milliseconds: float = 150) -> dict[str, float]:
    def events() -> tuple[Any, Any]:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call(*inputs)
        end.record()
        return begin, end

    def clock() -> float:
        begin = time.perf_counter()
        call(*inputs)
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    for _ in range(5):  # compiles, records graphs, and warms up
        call(*inputs)
    torch.cuda.synchronize()
    count = max(10, min(400, int(milliseconds / 1e3 / median([clock() for _ in range(5)]))))
    pairs = [events() for _ in range(count)]
    torch.cuda.synchronize()
    return {"us": median([begin.elapsed_time(end) * 1e3 for begin, end in pairs]),
            "clock_us": median([clock() * 1e6 for _ in range(count)])}


def measure_way(way: str, call: Call, inputs: list[Any], has_images: bool) -> dict[str, Any]:
    """Images in whichever order of dimensions is faster."""
    torch._dynamo.reset()  # or a second shape would be compiled for any
    orders = (torch.contiguous_format, torch.channels_last) if has_images else (torch.preserve_format,)
    try:
        with torch.no_grad():
            return min((measure(WAYS[way](call), [each.to(memory_format=order) for each in inputs]) for order in orders),
                       key=lambda times: times["us"])
    except Exception as error:
        return {"error": str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}
    finally:
        torch._dynamo.reset()
        torch.cuda.empty_cache()


def measure_copy(bytes_moved: int, device: str) -> dict[str, float]:
    """y.copy_(x) that reads and writes this many bytes."""
    x = torch.zeros(max(1, bytes_moved // 8), device=device)
    y = torch.empty_like(x)
    return measure(lambda: y.copy_(x), [])


def find_module(model: Path, device: str) -> Call | None:
    """What a file's model is in PyTorch: the archive of torch.export beside it, or torchvision's of this name."""
    archive = model.with_name(model.name.split(".")[0] + ".pt2")
    if archive.exists():
        from torch.export.passes import move_to_device_pass
        return move_to_device_pass(torch.export.load(str(archive)), device).module()
    try:
        import torchvision
        return torchvision.models.get_model(model.stem, weights=None).eval().to(device)
    except (ImportError, ValueError):
        return None
