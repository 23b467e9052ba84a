"""peer.py — what the programs have in common that run another engine for bench/peers, one model a process.

  ENGINE_peer.py run MODEL --inputs IN.npz --outputs OUT.npz
  ENGINE_peer.py bench MODEL --inputs IN.npz [--threads N] [--seconds S]

Inputs have the sizes of the arrays. They print a line of JSON.
"""

import argparse
import json
import math
import resource
import sys
import time

import numpy


def time_runs(load, seconds):
    """What `load` returns is a run. The fields are those of `tenon bench`."""
    start = time.perf_counter()
    run = load()
    loaded = time.perf_counter() - start

    def time_run():
        begin = time.perf_counter()
        run()
        return time.perf_counter() - begin

    spent = time_run()
    while spent < seconds / 10:
        spent += time_run()
    times, spent = [], 0
    while len(times) < 5 or spent < seconds:
        times.append(time_run())
        spent += times[-1]
    times.sort()
    return {"median_ms": 1e3 * times[len(times) // 2], "p95_ms": 1e3 * times[math.ceil(0.95 * len(times)) - 1],
            "min_ms": 1e3 * times[0], "load_ms": 1e3 * loaded, "runs": len(times),
            "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main(description, load):
    """`load(model, inputs, threads)` gives a function that runs the model, and one that names the arrays of what that returns."""
    parser = argparse.ArgumentParser(description=f"{description}\n{__doc__}", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["run", "bench"])
    parser.add_argument("model")
    parser.add_argument("--inputs", required=True)
    parser.add_argument("--outputs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()

    def loaded():
        return load(options.model, dict(numpy.load(options.inputs)), options.threads)

    try:
        if options.mode == "bench":
            found = time_runs(lambda: loaded()[0], options.seconds)
        else:
            run, named = loaded()
            arrays = named(run())
            numpy.savez(options.outputs, **arrays)
            found = {"outputs": list(arrays)}
        print(json.dumps(found))
    except Exception as error:  # of the engine's own types, too
        sys.exit(f"error: {' '.join(str(error).split())}")
