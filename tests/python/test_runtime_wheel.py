"""The wheel with libtenonrt alone: the same bits as the whole of Tenon, without it."""

import subprocess
import sys
import zipfile
from pathlib import Path

import numpy
import pytest
import tenon

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "build/libtenonrt.so.0"
pytestmark = pytest.mark.skipif(not LIBRARY.exists(), reason="libtenonrt is not built")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    made = subprocess.run([ROOT / "tools/runtime_wheel", ROOT / "build", folder], check=True, capture_output=True, text=True)
    with zipfile.ZipFile(made.stdout.strip()) as wheel:
        assert wheel.testzip() is None
        wheel.extractall(folder / "site")
    sys.path.insert(0, str(folder / "site"))
    import tenon_runtime
    yield tenon_runtime
    sys.path.remove(str(folder / "site"))


@pytest.fixture
def save(tmp_path):
    def save(text):
        source, program = tmp_path / "model.tenon", tmp_path / "model.tnp"
        source.write_text(text)
        subprocess.run([sys.executable, "-m", "tenon", "compile", source, "-o", program], check=True, capture_output=True)
        return source, program
    return save


SUM = """graph main(%x: f32[n,4], %y: f32[4]) {
  %0 = add(%x, %y)
  %1 = softmax(%0)
  %2 = reduce_sum(%0, axes=[0])
  return %1 as "rows", %2 as "sum"
}"""


def test_same_bits(runtime, save):
    source, path = save(SUM)
    whole = tenon.compile(str(source))
    y = numpy.arange(4, dtype="float32")
    for opened in runtime.open(path), runtime.open(path.read_bytes()), runtime.open(str(path), check_weights=True):
        for n in 1, 3, 70:
            x = numpy.random.default_rng(n).standard_normal((n, 4), dtype="float32")
            for got in opened(x, y), opened(y=y, x=x), opened.run([x, y], threads=1), opened.run({"x": x, "y": y}):
                for a, b in zip(got, whole(x, y), strict=True):
                    assert a.shape == b.shape and a.tobytes() == b.tobytes()


def test_describes(runtime, save):
    opened = runtime.open(save(SUM)[1])
    assert repr(opened) == "<tenon_runtime.Program: (x: f32[n,4], y: f32[4]) -> (rows: f32[n,4], sum: f32[4])>"
    assert opened.inputs[0] == ("x", "f32[n,4]", numpy.dtype("float32"), (None, 4))
    assert runtime.version() == tenon.__version__


def test_strides_and_other_dtypes(runtime, save):
    opened = runtime.open(save("graph main(%x: i64[2,3], %b: bf16[3]) { %0 = neg(%x) %1 = add(%b, %b) return %0, %1 }")[1])
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = numpy.arange(6).reshape(3, 2).T
    negative, twice = opened(x, numpy.array([1, 2, 3], dtype=ml_dtypes.bfloat16))
    assert (negative == -x).all() and twice.astype("float32").tolist() == [2, 4, 6]


def test_errors(runtime, save, tmp_path):
    path = save(SUM)[1]
    opened = runtime.open(path)
    x, y = numpy.zeros((2, 4), dtype="float32"), numpy.zeros(4, dtype="float32")
    for call, message in [
            (lambda: opened(x), "the input y is missing"),
            (lambda: opened(x, y, y), "3 inputs are given, but the program takes 2"),
            (lambda: opened(x, x=x), "the input x is given twice"),
            (lambda: opened(x, z=y), "there is no input z; there are x, y"),
            (lambda: opened(x.astype("float64"), y), "x must be of float32, but is of float64"),
            (lambda: opened(x[:, :3], y), "input x must be f32[n,4], but is f32[2,3]"),
            (lambda: runtime.open(path, target="z80"), f"{path}: the saved program has no code for z80; it has code for native"),
            (lambda: runtime.open(b"no"), "a program in memory: "),
            (lambda: runtime.open(tmp_path / "none.tnp"), f"cannot open {tmp_path / 'none.tnp'}: No such file or directory")]:
        with pytest.raises(runtime.TenonError) as error:
            call()
        assert str(error.value).startswith(message)
    assert opened(x, y)[1].tolist() == [0, 0, 0, 0]


def test_needs_nothing_of_tenon(runtime, save):
    path = save(SUM)[1]
    program = ("import sys, numpy, tenon_runtime; p = tenon_runtime.open(sys.argv[1]); "
               "p(numpy.zeros((2, 4), 'float32'), numpy.zeros(4, 'float32')); "
               "assert 'tenon' not in sys.modules and 'libLLVM' not in open('/proc/self/maps').read()")
    site = Path(runtime.__file__).parents[1]
    subprocess.run([sys.executable, "-c", program, path], check=True, env={"PYTHONPATH": str(site), "PATH": "/usr/bin"})
