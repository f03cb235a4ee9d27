"""Stages of the Python package: the binding with NumPy alone, what pip installs, and the binding with PyTorch."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import venv

import gates
from common import BUILD, PYTHON, ROOT, Result, main_build, output
from stages_check import LIBRARY, run_pytest

TORCH = BUILD / "venv-torch"

# What a wheel may hold besides Python files.
WHEEL_FILES = {"libisobit.so", "py.typed"}

CALL = """
import isobit, numpy
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


def torch_tests() -> Result:
    """The binding to PyTorch, the adapters, their examples and the binding to JAX, on the CPU."""
    result = Result()
    if torch_environment(result):
        environment = {"ISOBIT_LIBRARY": str(main_build() / "src" / LIBRARY), "OMP_NUM_THREADS": "1"}
        for name in ("torch", "jax"):
            run_pytest(result, f"pytest {name}", f"tests/{name}", environment, python=TORCH / "bin/python")
    return result


def wheel() -> Result:
    """`pip install .` without nvcc: what is in it, what it links, and that it says what it lacks."""
    result = Result()
    site = BUILD / "wheel-site"
    shutil.rmtree(site, ignore_errors=True)
    settings = [f"--config-settings={s}" for s in ("cmake.define.ISOBIT_ENABLE_CUDA=OFF", "build-dir=build/wheel")]
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--target", site]
    if not result.run("pip install .", [*pip, *settings, ROOT]):
        return result
    package = site / "isobit"
    extra = {path.name for path in package.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    result.add("files of the wheel", sorted(extra ^ WHEEL_FILES))
    library = package / LIBRARY
    exported = gates.exported_symbols(output(["nm", "-D", "--defined-only", library]))
    result.add("symbols of the wheel", gates.symbol_problems(gates.declared_functions(ROOT), exported))
    result.add("libraries of the wheel", gates.needed_problems(output(["readelf", "-d", library])))
    environment = {"PYTHONPATH": str(site), "ISOBIT_LIBRARY": ""}
    result.run("installed package", [PYTHON, "-c", CALL], cwd=site, environment=environment)
    said = output(["env", f"PYTHONPATH={site}", "ISOBIT_LIBRARY=", PYTHON, "-m", "isobit"], cwd=site)
    result.add("python -m isobit says what is missing", [] if "CPU backend only" in said else [said])
    return result
