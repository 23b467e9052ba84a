"""saved.py — saved programs, run where nothing of Tenon is installed, beside tenon run.

  saved.py bits MODEL... [--build FOLDER] [--dim NAME=N]... [--compile OPTION]...
  saved.py speed MODEL... [--runs N] ...
  saved.py emulate MODEL... --qemu COMMAND --target NAME[,NAME...] [--run TENON_RUN] ...
  saved.py arm MODEL... [--qemu COMMAND] [--target NAME[,NAME...]] [--run TENON_RUN] ...
  saved.py memory MODEL ...

bits saves each model, runs it by tenon-run in a root that holds the libraries of C and C++ alone, and compares the outputs with
those of tenon run, bit by bit. speed does the same and shows the time of a run by tenon-run and by tenon bench of the model, in
turn. emulate runs a program saved for several targets under qemu, such as "qemu-x86_64 -cpu Haswell -L ROOT", each target by name
and the one that is chosen; where this machine runs the target too, the outputs must be the same, else as near to those of tenon run
as the tests ask for. arm is the same for armv8.2+dotprod and armv8, under qemu-aarch64 by the tenon-run that `tools/cross_static
aarch64 tenon-run` builds. A MODEL of tests/data/programs is run as it is, and must print the same outputs as its text, whose whole numbers
nothing rounds. memory holds one
process open with a program that was run, then two, and compares their proportional set sizes. Inputs are those of MODEL.npz where it
is there, else drawn.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy

ROOT = Path(__file__).resolve().parent.parent
DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8",
          "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8", "bool": "bool"}
SIZE = 3  # of a dimension that nobody fixes
TOLERANCE = 1e-5  # of the largest, as in tests/compiler/expect_compiled.h


class Failure(Exception):
    pass


def shell(command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace", **options)
    if done.returncode != 0:
        raise Failure(f"{Path(command[0]).name}: exit status {done.returncode}: {done.stderr.strip()[:300]}")
    return done.stdout


def draw(port, generator, dims, whole):
    """An array for an input as tenon-run lists it, `ids: i64[batch,2*n]`, of whole numbers or of any."""
    dtype, sizes = re.fullmatch(r"(\w+)\[(.*)\]", port).groups()
    shape = []
    for size in sizes.split(",") if sizes else []:
        shape.append(int(eval(re.sub(r"[A-Za-z_]\w*", lambda name: dims.get(name[0], str(SIZE)), size), {"__builtins__": {}})))
    name = DTYPES[dtype]
    if whole:
        return generator.integers(-3, 4, shape).astype(name)
    if dtype == "bool":
        return generator.integers(0, 2, shape).astype(name)
    if dtype[0] in "iu":
        return generator.integers(0, 5, shape).astype(name)
    return generator.standard_normal(shape).astype(name)


class Workshop:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.tenon, self.runner = arguments.build / "tenon", arguments.build / "tenon-run"
        self.emulated = self.emulate()
        self.program, self.inputs = folder / "program.tnp", folder / "inputs.npz"
        for line in shell(["ldd", self.runner]).splitlines():
            if found := re.search(r"/\S+", line):
                target = folder / found[0].lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(Path(found[0]).read_bytes())
                target.chmod(0o755)
        (folder / "tenon-run").write_bytes(self.runner.read_bytes())
        (folder / "tenon-run").chmod(0o755)

    def emulate(self):
        words = (self.arguments.qemu or "").split()
        if words and "-L" not in words:  # under which /proc is not that of this machine
            (self.folder / "proc").mkdir()
            (self.folder / "proc/cpuinfo").touch()
            words += ["-L", self.folder]
        return [*words, self.arguments.run or self.runner]

    def save(self, model, targets=None):
        command = [self.tenon, "compile", model, "-o", self.program, *self.arguments.compile]
        for dim in self.arguments.dim:
            command += ["--dim", dim]
        shell(command + (["--target", targets] if targets else []))
        self.make_inputs(model)

    def make_inputs(self, model, whole=False):
        given = Path(model).with_suffix(".npz")
        if given.exists() and not self.arguments.dim:
            self.inputs.write_bytes(given.read_bytes())
            return
        asked = subprocess.run([*self.emulated, self.program], capture_output=True, text=True)
        dims = dict(dim.split("=") for dim in self.arguments.dim)
        generator, arrays = numpy.random.default_rng(1), {}
        for number, (name, port) in enumerate(re.findall(r"^  (.*): (\w+\[.*\])$", asked.stderr, re.MULTILINE)):
            arrays[f"input_{number}"] = draw(port, generator, dims, whole)
        numpy.savez(self.inputs, **arrays)

    def alone(self, *options):
        return ["env", "-i", "PATH=" + os.environ["PATH"], "unshare", "-r", "chroot", self.folder, "/tenon-run", "/program.tnp",
                "--inputs", "/inputs.npz", *options]


def equal(a, b):
    a, b = numpy.load(a), numpy.load(b)
    return a.files == b.files and all(a[name].tobytes() == b[name].tobytes() and a[name].shape == b[name].shape for name in a.files)


def check_bits(shop, model):
    shop.save(model)
    here, there = shop.folder / "here.npz", shop.folder / "there.npz"
    options = ["--threads", shop.arguments.threads]
    dims = [word for dim in shop.arguments.dim for word in ("--dim", dim)]
    shell(shop.alone("--outputs", "/there.npz", *options))
    shell([shop.tenon, "run", model, "--inputs", shop.inputs, "--outputs", here, *options, *dims])
    if not equal(here, there):
        raise Failure("other bits than tenon run")
    return f"same bits, {shop.program.stat().st_size / 1e6:.2f} MB"


def check_speed(shop, model):
    said = check_bits(shop, model)
    ratios = []
    for _ in range(shop.arguments.rounds):
        text = shell(shop.alone("--threads", shop.arguments.threads, "--runs", shop.arguments.runs))
        value, unit = re.search(r"more runs ([\d.]+) (\w+|µs)", text).groups()
        saved = float(value) * {"ns": 1e-6, "µs": 1e-3, "ms": 1, "s": 1e3}[unit]
        dims = [word for dim in shop.arguments.dim for word in ("--dim", dim)]
        measured = json.loads(shell([shop.tenon, "bench", model, "--inputs", shop.inputs, "--threads", shop.arguments.threads,
                                     "--seconds", 1, "--json", "-", *dims]))
        ratios.append(saved / measured["median_ms"])
    return f"{said}; saved / compiled {statistics.median(ratios):.3f} ({', '.join(f'{each:.3f}' for each in ratios)})"


def distance(a, b):
    """How far outputs are from others at most, in terms of the largest of those."""
    a, b = numpy.load(a), numpy.load(b)
    if [(name, a[name].shape) for name in a.files] != [(name, b[name].shape) for name in b.files]:
        raise Failure("other outputs than tenon run")
    return max(float(numpy.max(numpy.abs(a[name].astype("float64") - b[name].astype("float64")), initial=0) /
                     (numpy.max(numpy.abs(b[name].astype("float64")), initial=0) or 1)) for name in a.files)


def check_released(shop, program):
    model = re.sub(r"-(arm64|x86-64)\.tnp$", ".tenon", str(program))
    shop.program.write_bytes(Path(program).read_bytes())
    shop.make_inputs(program, whole=True)
    there = shell([*shop.emulated, shop.program, "--inputs", shop.inputs, "--threads", 1])
    here = shell([shop.tenon, "run", model, "--inputs", shop.inputs])
    if here != there:
        raise Failure(f"other outputs than tenon run, which says {here}, but this {there}")
    return f"{len(here.splitlines())} outputs as of tenon run"


def check_emulated(shop, model):
    if model.endswith(".tnp"):
        return check_released(shop, model)
    targets = shop.arguments.target.split(",")
    shop.save(model, shop.arguments.target)
    emulator = [*shop.emulated, shop.program, "--inputs", shop.inputs, "--threads", 1]
    said = []
    for target in [""] + targets:
        environment = dict(os.environ, TENON_TARGET=target) if target else None
        there, here = shop.folder / "there.npz", shop.folder / "here.npz"
        done = subprocess.run([str(word) for word in emulator] + ["--outputs", str(there)], env=environment, capture_output=True, text=True)
        if done.returncode < 0 or done.returncode > 3:
            raise Failure(f"{target or 'chosen'}: ended by {done.returncode}: {done.stderr[-300:]}")
        if done.returncode != 0:
            said.append(f"{target or 'chosen'}: {done.stderr.strip().splitlines()[-1].split('program.tnp: ')[-1]}")
            continue
        native = subprocess.run([shop.runner, shop.program, "--inputs", shop.inputs, "--threads", "1", "--outputs", here],
                                env=environment, capture_output=True, text=True)
        if not target or native.returncode != 0:
            wanted = shop.folder / "wanted.npz"
            dims = [word for dim in shop.arguments.dim for word in ("--dim", dim)]
            shell([shop.tenon, "run", model, "--inputs", shop.inputs, "--outputs", wanted, *dims])
            worst = distance(there, wanted)
            if not worst <= TOLERANCE:
                raise Failure(f"{target or 'chosen'}: {worst:.1e} from tenon run")
            said.append(f"{target or 'chosen'}: runs, {worst:.1e} from tenon run")
        elif equal(here, there):
            said.append(f"{target}: same bits as native")
        else:
            raise Failure(f"{target}: other bits than native")
    return "; ".join(said)


def proportional(process):
    text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss:\s+(\d+)", text, re.MULTILINE)[1]) / 1024


# Runs a program once with zeros, 1 where a size is not fixed, and keeps it open.
HOLD = r"""
#include <stdio.h>
#include <stdlib.h>
#include <tenon/tenon.h>

static tenon_tensor zeros(const tenon_port* port) {
  int64_t* sizes = malloc((port->rank + 1) * sizeof *sizes);
  size_t bytes = 16; /* of the widest element */
  for (int32_t i = 0; i < port->rank; ++i)
    bytes *= sizes[i] = port->sizes[i] < 0 ? 1 : port->sizes[i];
  tenon_tensor tensor = {.struct_size = sizeof tensor, .data = calloc(bytes, 1), .bytes = bytes, .dtype = port->dtype,
                         .rank = port->rank, .sizes = sizes};
  return tensor;
}

int main(int argc, char** argv) {
  tenon_program* program;
  tenon_tensor inputs[64], outputs[64];
  if (argc != 2 || tenon_open(argv[1], NULL, &program) != TENON_OK)
    return puts(tenon_error_message()), 1;
  const size_t in = tenon_program_count_inputs(program), out = tenon_program_count_outputs(program);
  for (size_t i = 0; i < in; ++i)
    inputs[i] = zeros(tenon_program_input(program, i));
  for (size_t i = 0; i < out; ++i)
    outputs[i] = zeros(tenon_program_output(program, i));
  const tenon_run_options options = {.struct_size = sizeof options, .threads = 1};
  if (tenon_run(program, inputs, in, outputs, out, &options) != TENON_OK)
    return puts(tenon_error_message()), 1;
  puts("ready");
  fflush(stdout);
  return getchar() == 'q';
}
"""


def check_memory(shop, model):
    shop.save(model)
    (shop.folder / "hold.c").write_text(HOLD)
    library = shop.arguments.build / "libtenonrt.so.0"
    shell(["cc", "-I", ROOT / "include", "-o", shop.folder / "hold", shop.folder / "hold.c", library, f"-Wl,-rpath,{library.parent}"])

    def start():
        process = subprocess.Popen([shop.folder / "hold", shop.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if (line := process.stdout.readline()) != "ready\n":
            raise Failure(f"the program does not run: {line.strip()}")
        return process

    processes = [start()]
    one = proportional(processes[0])
    processes.append(start())
    two = sum(map(proportional, processes))
    for process in processes:
        process.communicate("")
    return f"one process {one:.1f} MiB, two {two:.1f} MiB together: {two / one:.2f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["bits", "speed", "emulate", "arm", "memory"])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--build", type=lambda path: Path(path).resolve(), default=ROOT / "build")
    parser.add_argument("--dim", action="append", default=[])
    parser.add_argument("--compile", action="append", default=[], help="an option of tenon compile")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--qemu", help="the emulator with its options")
    parser.add_argument("--run", help="the tenon-run that it runs")
    parser.add_argument("--target", help="that the program is saved for, and run by")
    arguments = parser.parse_args()
    if arguments.what == "arm":
        arguments.qemu = arguments.qemu or "qemu-aarch64"
        arguments.run = arguments.run or ROOT / "build-cross-aarch64/tenon-run"
        arguments.target = arguments.target or "armv8.2+dotprod,armv8"
    check = {"bits": check_bits, "speed": check_speed, "emulate": check_emulated, "arm": check_emulated,
             "memory": check_memory}[arguments.what]
    failures = 0
    for model in arguments.models:
        with tempfile.TemporaryDirectory() as folder:
            try:
                said = check(Workshop(arguments, Path(folder)), model)
            except Failure as failure:
                failures += 1
                said = f"FAILED: {failure}"
        print(f"{Path(model).name}: {said}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
