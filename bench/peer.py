"""peer.py — what the programs have in common that run another engine for bench/peers, one model a process: how runs are timed."""

import math
import resource
import time


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
