"""The table of kernels."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from ._abi import KernelInfo
from ._library import check, library


class Kernel(NamedTuple):
    """One row: what ``isobit list`` prints."""

    op: str
    kernel: str
    architectures: str
    contract: str
    built: bool
    usable: bool
    reason: str  # why it is not usable here, "" if it is


def kernels() -> list[Kernel]:
    """All rows, best row of an operator first."""
    rows = []
    for index in range(library.isobit_kernel_count()):
        info = KernelInfo(struct_size=ctypes.sizeof(KernelInfo))
        check(library.isobit_get_kernel_info(index, ctypes.byref(info)))
        rows.append(Kernel(info.op.decode(), info.kernel.decode(), info.architectures.decode(), info.contract.decode(),
                           bool(info.built), bool(info.usable), info.reason.decode()))  # fmt: skip
    return rows


def build_info() -> str:
    """One line about the build of the library that is loaded."""
    return library.isobit_build_info().decode()


def has_cuda() -> bool:
    """Whether the library was built with nvcc. False: the CPU backend is all there is, and GPU tensors are refused."""
    return "without CUDA" not in build_info()
