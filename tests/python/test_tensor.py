import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import isobit
from isobit._tensor import aligned_bytes, view

PACKAGES = str(pathlib.Path(isobit.__file__).parents[1])


def test_every_bf16_value_survives_the_round_trip():
    bits = np.arange(1 << 16, dtype=np.uint16)
    values = isobit.from_bf16(bits)
    finite_or_inf = ~np.isnan(values)
    assert np.array_equal(isobit.to_bf16(values)[finite_or_inf], bits[finite_or_inf])
    assert (isobit.to_bf16(values)[~finite_or_inf] == 0x7FFF).all()


def test_bf16_ties_go_to_even():
    # 1 + 2^-8 lies between 1 and 1 + 2^-7; 1 + 3 * 2^-8 between 1 + 2^-7 and 1 + 2^-6.
    values = np.array([1 + 2**-8, 1 + 3 * 2**-8, np.nextafter(np.float32(1 + 2**-8), np.float32(2))], np.float32)
    assert isobit.to_bf16(values).tolist() == [0x3F80, 0x3F82, 0x3F81]


def test_a_view_counts_elements_not_bytes():
    array = np.zeros((4, 6), np.float16)[::2, 1:]
    tensor = view("a", array)
    assert (tensor.rank, list(tensor.shape)[:2], list(tensor.stride)[:2]) == (2, [2, 5], [12, 1])
    assert tensor.data == array.ctypes.data


@pytest.mark.parametrize("bad", [np.zeros(3, np.float64), [1.0, 2.0], np.zeros(3, ">f4"), np.zeros(2, bool)])
def test_anything_but_a_known_array_is_a_type_error(bad):
    with pytest.raises(TypeError, match=r"^a: expected"):
        view("a", bad)


def test_strides_of_part_elements_are_refused():
    packed = np.zeros(4, np.dtype([("x", "<f4"), ("y", "u1")]))
    with pytest.raises(ValueError, match="whole elements"):
        view("a", packed["x"])


@pytest.mark.parametrize("count", [0, 1, 255, 256, 1000])
def test_workspace_is_aligned(count):
    raw = aligned_bytes(count)
    assert raw.size == count
    assert count == 0 or raw.ctypes.data % 256 == 0


def test_build_info_names_the_version():
    assert isobit.build_info().startswith(f"isobit {isobit.__version__}, ")


def test_kernels_have_a_reason_exactly_if_they_are_not_usable():
    for row in isobit.kernels():
        assert row.usable == (row.reason == "")
        assert row.built or not row.usable


def test_a_refusal_carries_the_status():
    error = isobit.InvalidArgumentError(1, "text")
    assert isinstance(error, ValueError)
    assert error.status == 1


def test_the_module_prints_the_build_and_every_kernel():
    done = subprocess.run([sys.executable, "-m", "isobit"], env={**os.environ, "PYTHONPATH": PACKAGES}, text=True,
                          capture_output=True, check=True)  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0] == isobit.build_info()
    assert lines[1].startswith("library /") or lines[1].startswith("library build")
    assert lines[2].startswith("Python 3.")
    assert f"numpy {np.__version__}" in lines[2]
    assert ("CPU backend only" in done.stdout) == (not isobit.has_cuda())
    rows = lines[3 + (not isobit.has_cuda()) :]
    for line, row in zip(rows, isobit.kernels(), strict=True):
        assert line.split(None, 3) == [row.op, row.kernel, row.contract, "usable" if row.usable else row.reason]


def test_a_library_that_is_named_and_not_there_is_no_other_one(tmp_path):
    named = {**os.environ, "PYTHONPATH": PACKAGES, "ISOBIT_LIBRARY": str(tmp_path / "libisobit.so")}
    done = subprocess.run([sys.executable, "-c", "import isobit"], env=named, text=True, capture_output=True,
                          check=False)  # fmt: skip
    assert done.returncode == 1
    assert f"ISOBIT_LIBRARY: expected the path of libisobit, got {tmp_path}" in done.stderr


def test_importing_isobit_imports_numpy_and_nothing_larger():
    loaded = "import isobit, sys; print(*({'torch', 'jax', 'transformers'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", loaded], env={**os.environ, "PYTHONPATH": PACKAGES}, text=True,
                          capture_output=True, check=True)  # fmt: skip
    assert done.stdout.strip() == ""
