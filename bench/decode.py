"""decode.py — what bench/decode.cpp does, with ONNX Runtime, and whether both agree.

  build/peers-venv/bin/python bench/decode.py MODEL.onnx [--steps N] [--prompt N] [--threads N] [--outputs FILE]

FILE is what bench_decode wrote with the same --steps and --prompt. Each step is compared by itself, from what Tenon remembered
of the steps before: no element may differ from ONNX Runtime's by more than 1e-3 of the largest. A model that quantises what it
computes can be compared only so far: a last bit that differs may round to the next integer, and ONNX Runtime differs from
itself when it optimises more or less, or when last bits of what it is given change. So a step agrees when it does with one of
its levels, or with such a run.
"""

import argparse
import math
import sys
import time

import numpy
from ort import LEVELS, dtype_of, load

TOLERANCE = 1e-3
NUDGES = 8


def empty_past(port):
    """The dimensions that are not fixed are the batch, which is 1, and last the tokens."""
    sizes = [size if isinstance(size, int) else 1 for size in port.shape]
    sizes[max(i for i, size in enumerate(port.shape) if not isinstance(size, int))] = 0
    return numpy.zeros(sizes, dtype_of(port))


def feed(port, past, tokens):
    if "mask" in port.name:
        return numpy.ones((1, past + tokens), numpy.int64)
    positions = numpy.arange(past, past + tokens, dtype=numpy.int64).reshape(1, tokens)
    return positions if "position" in port.name else positions * 7919 % 1000


def difference(ours, theirs):
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        apart = numpy.abs(a.astype(numpy.float64) - b).max(initial=0)
        if apart != 0:
            worst = max(worst, float(apart / numpy.abs(b).max()) if numpy.isfinite(a).all() else math.inf)
    return worst


def nudge(inputs, seed):
    """The same but for the last bits of floats."""
    def nudged(array):
        if array.dtype != numpy.float32:
            return array
        chosen = (numpy.arange(1, array.size + 1, dtype=numpy.uint64) * 2654435761 * seed >> 16 & 1).astype(numpy.uint32)
        return (array.ravel().view(numpy.uint32) ^ chosen).view(numpy.float32).reshape(array.shape)

    return {name: nudged(array) for name, array in inputs.items()}


class Agreement:
    """Compares the steps of a file with sessions of all levels, the first of which optimises most."""

    def __init__(self, path, sessions):
        self.file, self.sessions = open(path, "rb"), sessions
        self.differences, self.unsure, self.with_first, self.with_any = [], 0, 0, 0

    def read(self, like):
        """The outputs that Tenon computed, which have the types and sizes of these."""
        arrays = [numpy.fromfile(self.file, each.dtype, each.size) for each in like]
        if any(array.size != each.size for array, each in zip(arrays, like)):
            sys.exit(f"{self.file.name} ends too early")
        return [array.reshape(each.shape) for array, each in zip(arrays, like)]

    def compare(self, inputs, first):
        """The outputs of Tenon for the next step."""
        every = [first] + [session.run(None, inputs) for session in self.sessions[1:]]
        ours = self.read(first)
        found = [difference(ours, theirs) for theirs in every]
        least = min(found)
        self.with_first += found[0] <= TOLERANCE
        self.with_any += least <= TOLERANCE
        for seed in range(1, NUDGES + 1):
            if least > TOLERANCE:
                least = min(least, *(difference(ours, session.run(None, nudge(inputs, seed))) for session in self.sessions))
        self.differences.append(least)
        self.unsure += any(difference(theirs, first) > TOLERANCE for theirs in every)
        return ours

    def report(self):
        far = [f"{step} ({worst:.1e})" for step, worst in enumerate(self.differences) if worst > TOLERANCE]
        near = max((worst for worst in self.differences if worst <= TOLERANCE), default=0.0)
        print(f"{len(self.differences) - len(far)} of {len(self.differences)} runs agree, within {near:.1e}; {self.with_first} "
              f"with all its optimisations, {self.with_any} with some level of them, the others when last bits change; in "
              f"{self.unsure}, ONNX Runtime differs from itself" + (f"; these differ: {', '.join(far)}" if far else ""))
        return 1 if far else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    for name, default in (("steps", 64), ("prompt", 8), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--outputs")
    options = parser.parse_args()
    sessions = [load(options.model, options.threads, level) for level in (LEVELS if options.outputs else ["all"])]
    agreement = Agreement(options.outputs, sessions) if options.outputs else None
    ports = sessions[0].get_inputs()
    presents = [i for i, port in enumerate(sessions[0].get_outputs()) if port.name.startswith("present")]
    cache = {port.name: empty_past(port) for port in ports if port.name.startswith("past")}
    times, past = [], 0
    for step in range(options.steps + 1):
        tokens = options.prompt if step == 0 else 1
        inputs = {**cache, **{port.name: feed(port, past, tokens) for port in ports if not port.name.startswith("past")}}
        start = time.perf_counter()
        outputs = sessions[0].run(None, inputs)
        times.append(1e3 * (time.perf_counter() - start))
        if agreement:
            outputs = agreement.compare(inputs, outputs)
        past += tokens
        cache = dict(zip(cache, (outputs[i] for i in presents)))
    first, *later = times
    later.sort()
    print(f"ONNX Runtime: {options.prompt} tokens of prompt in {first:.2f} ms; {options.steps} steps: median "
          f"{later[len(later) // 2]:.2f} ms, p95 {later[int(0.95 * len(later))]:.2f} ms, min {later[0]:.2f} ms")
    return agreement.report() if agreement else 0


if __name__ == "__main__":
    sys.exit(main())
