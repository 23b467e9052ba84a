"""How the wheel with the bindings of several Pythons is built, and joined."""

import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DESCRIBE = """
import os, sys, sysconfig
folder = sysconfig.get_path("include")
print(folder if sys.version_info >= (3, 11) and os.path.exists(folder + "/Python.h") else "")
"""
PROJECT = f"""
cmake_minimum_required(VERSION 3.25)
project(pythons NONE)
include({ROOT}/cmake/find_python.cmake)
message(STATUS "includes ${{Python_INCLUDE_DIRS}}")
"""


def configure(folder, *options):
    (folder / "CMakeLists.txt").write_text(PROJECT)
    done = subprocess.run(["cmake", "-S", folder, "-B", folder / "build", *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pythons():
    """Programs by where their headers are."""
    places = [sys.executable, "/usr/bin/python3", *map(shutil.which, ("python3.11", "python3.12", "python3.13"))]
    found = {}
    for python in filter(None, places):
        if pathlib.Path(python).exists():
            headers = subprocess.run([python, "-c", DESCRIBE], capture_output=True, text=True).stdout.strip()
            if headers:
                found.setdefault(headers, python)
    return found


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake configures it")
def test_what_was_found_of_one_python_is_forgotten_for_another(tmp_path):
    found = pythons()
    if len(found) < 2:
        pytest.skip("there is one Python with headers alone")
    for headers in [*found, next(iter(found))]:
        # As scikit-build-core leaves it, which says more of a Python than where it is.
        assert f"includes {headers}\n" in configure(tmp_path, f"-DPython_EXECUTABLE={found[headers]}")
        with (tmp_path / "build" / "CMakeCache.txt").open("a") as cache:
            cache.write(f"Python_INCLUDE_DIR:PATH={headers}\nSKBUILD_SOABI:STRING=of-that-one\n")


@pytest.mark.skipif(shutil.which("cmake") is None or not pythons(), reason="cmake configures it for a Python with headers")
def test_the_python_that_was_asked_for_stays(tmp_path):
    headers, python = next(iter(pythons().items()))
    folder = pathlib.Path(python).parents[1]
    asked = configure(tmp_path, f"-DPython_ROOT_DIR={folder}", "-DPython_FIND_STRATEGY=LOCATION")
    assert f"includes {headers}\n" in asked
    assert f"includes {headers}\n" in configure(tmp_path)


def wheel(path, binding):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tenon/__init__.py", "")
        archive.writestr(f"tenon/{binding}", pathlib.Path("/bin/true").read_bytes())
        archive.writestr("tenon-0.1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: cp0-cp0-linux\n")
        archive.writestr("tenon-0.1.0.dist-info/RECORD", binding)
    return path


@pytest.mark.skipif(shutil.which("readelf") is None, reason="it asks readelf which glibc is wanted")
def test_wheels_are_joined(tmp_path):
    first = wheel(tmp_path / "tenon-0.1.0-cp311-cp311-linux.whl", "_tenon.cpython-311-x86_64-linux-gnu.so")
    second = wheel(tmp_path / "tenon-0.1.0-cp312-abi3-linux.whl", "_tenon.abi3.so")
    joined = subprocess.run([sys.executable, ROOT / "tools" / "join_wheels", tmp_path, first, second],
                            capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    assert "/tenon-0.1.0-cp311.cp312-abi3.cp311-manylinux_2_" in joined
    with zipfile.ZipFile(joined) as archive:
        names = archive.namelist()
        tags = archive.read("tenon-0.1.0.dist-info/WHEEL").decode()
    assert {"tenon/_tenon.abi3.so", "tenon/_tenon.cpython-311-x86_64-linux-gnu.so"} <= set(names)
    assert "Tag: cp311-cp311-manylinux" in tags and "Tag: cp312-abi3-manylinux" in tags and "cp0" not in tags
