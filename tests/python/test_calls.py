"""Programs called with tensors of several libraries, where these have them."""

import importlib.util
import os
import subprocess
import sys
import threading

import ml_dtypes
import numpy
import pytest

import tenon
from tenon import ops

torch = pytest.importorskip("torch")

DTYPES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
    "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
}
EXTENDED = {
    "bf16": "bfloat16", "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "i4": "int4", "i2": "int2", "u4": "uint4",
    "f4e2m1": "float4_e2m1fn",
}


def doubled(type_text):
    return tenon.trace(lambda x: ops.add(x, x), type_text).compile()


@pytest.fixture(scope="module")
def net():
    """Of two outputs: x @ w + 1, and the maximum of each row."""
    w = numpy.arange(12, dtype="f").reshape(3, 4) / 10

    def compute(x):
        y = ops.matmul(x, w) + 1.0
        return y, ops.reduce_max(y, axes=[1])

    program = tenon.trace(compute, "f32[n,3]").compile()

    def expected(x):
        y = numpy.asarray(x) @ w + 1
        return y, y.max(1)

    return program, expected


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_every_width(dtype):
    x = numpy.array([[1, 2, 3], [4, 5, 6]], dtype=DTYPES[dtype])
    y = doubled(f"{dtype}[2,3]")(x)
    assert y.dtype == x.dtype and (y == 2 * x).all()
    if hasattr(torch, DTYPES[dtype]) and not dtype.startswith("u") or dtype == "u8":
        y = doubled(f"{dtype}[2,3]")(torch.from_numpy(x))
        assert isinstance(y, torch.Tensor) and (y.numpy() == 2 * x).all()


@pytest.mark.parametrize("dtype", EXTENDED)
def test_numbers_that_numpy_has_by_ml_dtypes(dtype):
    x = numpy.array([0, 1, -1, 1], dtype="f").astype(getattr(ml_dtypes, EXTENDED[dtype]))
    y = tenon.trace(lambda x: ops.cast(x, to="f32"), f"{dtype}[4]").compile()(x)
    assert (y == x.astype("f")).all()
    back = tenon.trace(lambda x: ops.cast(x, to=dtype), "f32[4]").compile()(y)
    assert back.dtype == x.dtype and (back.view("u1") == x.view("u1")).all()


def test_bfloat16_of_torch():
    x = torch.randn(5, dtype=torch.bfloat16)
    assert torch.equal(doubled("bf16[5]")(x), x + x)


def test_booleans_and_complex_numbers():
    b = numpy.array([True, False, True])
    both = tenon.trace(lambda x, y: ops.and_(x, y), "bool[3]", "bool[3]").compile()
    assert both(b, ~b).tolist() == [False] * 3 and both(b, b).dtype == bool
    z = numpy.array([1 + 2j, 3 - 1j], dtype="complex64")
    assert (tenon.trace(lambda x: ops.unsqueeze(x, axes=[0]), "c64[2]").compile()(z) == z).all()


def test_what_goes_in_comes_back(net):
    program, expected = net
    x = numpy.random.default_rng(0).standard_normal((5, 3), dtype="f")
    for given, kind in ((x, numpy.ndarray), (torch.from_numpy(x), torch.Tensor), (memoryview(x), tenon.Array)):
        results = program(given)
        assert [type(each) for each in results] == [kind, kind]
        for result, want in zip(results, expected(x)):
            numpy.testing.assert_allclose(numpy.asarray(result), want, rtol=1e-5)


def test_an_array_of_ours_is_seen_by_other_libraries(net):
    y, _ = net[0](memoryview(numpy.ones((2, 3), dtype="f")))
    seen, imported = numpy.asarray(y), torch.from_dlpack(y)
    assert y.shape == (2, 4) and y.dtype == "f32"
    seen[0, 0] = 7
    assert imported[0, 0] == 7


def test_results_are_written_into_memory_of_the_caller(net):
    program, expected = net
    x = torch.randn(6, 3)
    y, top = torch.empty(6, 4), torch.empty(6)
    places = y.data_ptr(), top.data_ptr()
    results = program.run(x, out=(y, top), threads=1)
    assert results[0] is y and results[1] is top and places == (y.data_ptr(), top.data_ptr())
    numpy.testing.assert_allclose(y, expected(x)[0], rtol=1e-5)
    with pytest.raises(tenon.UserError, match="sizes"):
        program.run(x, out=(torch.empty(6, 5), top))
    with pytest.raises(tenon.UserError, match="outputs"):
        program.run(x, out=y)


def test_strided_tensors(net):
    program, expected = net
    x = torch.randn(3, 8)
    for given in (x.t(), x.t()[::2], x.t().flip(0), torch.randn(1, 3).expand(4, 3)):
        numpy.testing.assert_allclose(program(given)[0], expected(given)[0], rtol=1e-5)
    array = numpy.random.default_rng(0).standard_normal((3, 8), dtype="f").T[::-2]
    numpy.testing.assert_allclose(program(array)[0], expected(array)[0], rtol=1e-5)
    out = torch.empty(4, 8).t()
    program.run(x.t(), out=(out, torch.empty(8)))
    numpy.testing.assert_allclose(out, expected(x.t())[0], rtol=1e-5)


def test_lazy_views_of_torch_are_never_read_as_they_are():
    z = torch.tensor([1 + 2j, 3 - 1j])
    program = tenon.trace(lambda x: ops.unsqueeze(x, axes=[0]), "c64[2]").compile()
    assert torch.equal(program(z.conj()), z.conj().resolve_conj()[None])
    imaginary = z.conj().imag
    assert imaginary.is_neg()
    assert torch.equal(doubled("f32[2]")(imaginary), 2 * imaginary.resolve_neg())
    with pytest.raises(tenon.UserError, match="can be read alone"):
        doubled("f32[2]").run(torch.ones(2), out=imaginary)


def test_inputs_by_name():
    program = tenon.trace(lambda a, b: a - b, "f32[2]", "f32[2]").compile()
    a, b = numpy.array([5, 6], dtype="f"), numpy.array([1, 2], dtype="f")
    assert program(a, b=b).tolist() == program(b=b, a=a).tolist() == [4, 4]
    for arguments, named, message in (
        ((a,), {}, "takes 2 inputs"), ((a,), {"c": b}, "b is missing"), ((a, b), {"b": b}, "given twice"),
        ((a, b), {"c": b}, "no input c"),
    ):
        with pytest.raises(tenon.UserError, match=message):
            program(*arguments, **named)


def test_sizes_that_vary(net):
    program, expected = net
    for n in (1, 2, 7, 64, 0):
        x = torch.randn(n, 3)
        if n:
            numpy.testing.assert_allclose(program(x)[0], expected(x)[0], rtol=1e-5)
        else:
            assert tenon.trace(lambda x: x + 1.0, "f32[n,3]").compile()(x).shape == (0, 3)


def test_sizes_that_depend_on_elements():
    program = tenon.trace(lambda x: ops.nonzero(x), "f32[n]").compile()
    x = numpy.array([0, 3, 0, 4], dtype="f")
    assert program(x).tolist() == [[1, 3]]
    assert program(torch.from_numpy(x)).tolist() == [[1, 3]]
    with pytest.raises(tenon.UserError, match="depend on the elements"):
        program.run(x, out=x)


@pytest.mark.parametrize("wrong, message", [
    (numpy.ones((2, 3)), "f64"), (numpy.ones((2, 4), dtype="f"), "4"), (numpy.ones(3, dtype="f"), "f32"),
    ([1, 2], "a list, and no tensor"), (None, "NoneType"), (numpy.array(["a"]), "no tensor of numbers"),
    (numpy.ones((2, 3), dtype=">f4"), "format"),
])
def test_what_does_not_fit_is_an_error(net, wrong, message):
    with pytest.raises(tenon.UserError, match=message):
        net[0](wrong)
    assert net[0](numpy.ones((1, 3), dtype="f"))[0].shape == (1, 4)  # the program goes on


def test_threads_may_call_and_compile_at_once(net):
    program, expected = net
    failures = []

    def call(seed):
        for _ in range(50):
            x = numpy.random.default_rng(seed).standard_normal((9, 3), dtype="f")
            if not numpy.allclose(program(x)[0], expected(x)[0], rtol=1e-4, atol=1e-6):
                failures.append(seed)

    def build():
        for n in range(3):
            doubled(f"f32[{n + 2}]")

    threads = [threading.Thread(target=call, args=(seed,)) for seed in (1, 2)] + [threading.Thread(target=build)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def run_apart(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=1800,
                          cwd=os.path.dirname(__file__))


def test_a_forked_process_runs_programs():
    done = run_apart("""
import os, numpy, tenon
from tenon import ops
x = numpy.random.rand(300, 300).astype("f")
program = tenon.trace(lambda x: ops.matmul(x, x), "f32[300,300]").compile()
before = program(x)
child = os.fork()
if child == 0:
    ok = (program.run(x, threads=2) == before).all() and tenon.trace(lambda x: x + 1.0, "f32[2]").compile()(x[0, :2]).shape == (2,)
    os._exit(0 if ok else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""")
    assert done.stdout == "0\n", done.stderr


def test_a_process_forked_while_threads_call_and_compile_goes_on():
    done = run_apart("""
import os, threading, numpy, tenon
from tenon import ops
x = numpy.random.rand(200, 200).astype("f")
def build(n):
    return tenon.trace(lambda x: ops.matmul(x, x) + float(n), "f32[200,200]").compile(cache="")
program, stop = build(0), threading.Event()
before = program(x)
def call():
    while not stop.is_set():
        program.run(x, threads=2)
def compile():
    while not stop.is_set():
        build(1)
threads = [threading.Thread(target=work) for work in (call, call, compile)]
for thread in threads:
    thread.start()
codes = []
for n in range(10):
    child = os.fork()
    if child == 0:
        os._exit(0 if (program.run(x, threads=2) == before).all() and build(n)(x).shape == x.shape else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
for thread in threads:
    thread.join()
print(codes)
""")
    assert done.stdout == f"{[0] * 10}\n", done.stderr


def test_importing_needs_neither_numpy_nor_torch():
    done = run_apart("import sys, tenon; print([m for m in ('numpy', 'torch', 'onnx') if m in sys.modules])")
    assert done.stdout == "[]\n", done.stderr


def test_importing_is_quick_for_it_needs_little():
    # Each of these takes a good part of the time that all of Tenon does, and most programs never use what needs it.
    done = run_apart("""
import sys
before = set(sys.modules)
import tenon
print(sorted({'ast', 'copy', 'dataclasses', 'enum', 'html', 'inspect', 'json', 're', 'typing'} & (set(sys.modules) - before)))
for name in tenon.__all__:
    getattr(tenon, name)
print(set(tenon.__all__) - set(dir(tenon)), tenon.Port, tenon.verify_pass.__module__)
try:
    tenon.compil
except AttributeError as error:
    print(error)
""")
    assert done.stdout == ("[]\nset() <class 'tenon._records.Port'> tenon._check\n"
                           "module 'tenon' has no attribute 'compil'\n"), done.stderr


# Those that bring an LLVM, or threads, of their own.
OTHERS = [name for name in ("torch", "llvmlite.binding", "onnxruntime", "triton") if importlib.util.find_spec(name.split(".")[0])]
ORDERS = [order for other in OTHERS for order in (("tenon", other), (other, "tenon"))]
ORDERS += [order for i in range(len(OTHERS) + 1) if (order := (*OTHERS[:i], "tenon", *OTHERS[i:])) not in ORDERS]


@pytest.mark.parametrize("order", ORDERS, ids=" ".join)
def test_libraries_are_imported_in_any_order(order):
    done = run_apart("\n".join(f"import {name}" for name in order) + """
import sys, numpy, tenon
from tenon import ops
x = numpy.array([-1, 2], dtype="f")
net = tenon.trace(lambda x: ops.relu(x), "f32[2]").compile(cache="")
assert net(x).tolist() == [0, 2]
if llvm := sys.modules.get("llvmlite.binding"):
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly("define i32 @one() { ret i32 1 }"),
                                        llvm.Target.from_default_triple().create_target_machine())
    engine.finalize_object()
    assert engine.get_function_address("one")
if torch := sys.modules.get("torch"):
    assert torch.equal(net(torch.from_numpy(x)), torch.relu(torch.from_numpy(x)))
if ort := sys.modules.get("onnxruntime"):
    import onnx.parser
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Relu(x) }')
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert session.run(None, {"x": x})[0].tolist() == [0, 2]
print("ran")
""")
    assert done.stdout == "ran\n", done.stderr


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_nothing_is_copied(library):
    done = run_apart(f"import {library} as library" + """
import resource, numpy, tenon
from tenon import ops
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
def ones(*sizes):
    return library.ones(sizes, dtype=library.float32)
total = tenon.trace(lambda x: ops.reduce_sum(x, axes=[0, 1]), "f32[8192,8192]").compile()
fill = tenon.trace(lambda x: ops.add(x, numpy.zeros((8192, 1), dtype="f")), "f32[1,8192]").compile()
x, row, result = ones(8192, 8192), ones(1, 8192), ones()
before = peak()
assert total(x) == 8192 * 8192
assert total.run(x, out=result) is result and result == 8192 * 8192
assert fill.run(row, out=x) is x
print(peak() - before < 64)  # MiB, a quarter of either
""")
    assert done.stdout == "True\n", done.stderr
