"""The library's TVM-FFI functions, which take DLPack tensors of PyTorch and JAX; None where they are not to be had.

They need the package apache-tvm-ffi and libisobit_tvm_ffi.so beside the library. ISOBIT_TVM_FFI=0 in the environment
leaves them alone when isobit is imported: every call then goes through ctypes, with the same bytes.
"""

from __future__ import annotations

import os
from pathlib import Path

from ._library import class_of, library

_NAME = "libisobit_tvm_ffi.so"


def _error_class(status: int) -> type:
    """The class of a status as TVM-FFI makes exceptions: from a message alone."""
    base = class_of(status)

    def start(self, message: str):
        base.__init__(self, status, message)

    return type(base.__name__, (base,), {"__init__": start, "__module__": base.__module__})


def _load():
    path = Path(library._name).with_name(_NAME)
    if os.environ.get("ISOBIT_TVM_FFI") == "0" or not path.is_file():
        return None
    try:
        import tvm_ffi  # noqa: PLC0415 - an optional package
    except ImportError:
        return None
    for status in range(1, 6):
        tvm_ffi.register_error(f"isobit.Error/{status}", _error_class(status))
    return tvm_ffi.load_module(str(path))


shim = _load()
