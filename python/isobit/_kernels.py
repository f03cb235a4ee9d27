"""The table of kernels."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from ._library import check, library


class _Info(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("op", ctypes.c_char_p),
        ("kernel", ctypes.c_char_p),
        ("architectures", ctypes.c_char_p),
        ("contract", ctypes.c_char_p),
        ("built", ctypes.c_int32),
        ("usable", ctypes.c_int32),
        ("reason", ctypes.c_char_p),
    ]


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
        info = _Info(struct_size=ctypes.sizeof(_Info))
        check(library.isobit_get_kernel_info(index, ctypes.byref(info)))
        rows.append(Kernel(info.op.decode(), info.kernel.decode(), info.architectures.decode(), info.contract.decode(),
                           bool(info.built), bool(info.usable), info.reason.decode()))  # fmt: skip
    return rows


def build_info() -> str:
    """One line about the build of the library that is loaded."""
    return library.isobit_build_info().decode()
