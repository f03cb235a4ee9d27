"""Stages of the Python package: the binding with NumPy alone, and what pip installs."""

from __future__ import annotations

import shutil

import gates
from common import BUILD, PYTHON, ROOT, Result, main_build, output
from stages_check import LIBRARY, run_pytest

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
