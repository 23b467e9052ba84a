"""difference.py — how far the outputs of two engines differ: difference.py OURS.npz THEIRS.npz

It prints max |a - b| / max |b|, the most of all outputs; inf where one has another shape, or is not finite where the other
is. Where nothing in THEIRS is finite, the inputs do not suit the model, and it fails.
"""

import sys

import numpy


def difference(ours, theirs):
    if ours is None or ours.shape != theirs.shape:
        return float("inf")
    if theirs.size == 0:
        return 0.0
    a, b = ours.astype(numpy.float64), theirs.astype(numpy.float64)
    if not numpy.isfinite(b).any():
        sys.exit("error: no element of an output is finite")
    same = (a == b) | (numpy.isnan(a) & numpy.isnan(b))
    if same.all():
        return 0.0
    with numpy.errstate(invalid="ignore"):
        apart = numpy.where(same, 0, numpy.abs(a - b))
    largest = numpy.abs(b[numpy.isfinite(b)]).max()
    return float(apart.max() / largest) if numpy.isfinite(apart).all() and largest > 0 else float("inf")


def main():
    ours, theirs = (dict(numpy.load(path)) for path in sys.argv[1:3])
    print(max(difference(ours.get(name), array) for name, array in theirs.items()))


if __name__ == "__main__":
    main()
