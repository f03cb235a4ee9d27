"""Finds and loads libisobit."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

VERSION = (0, 1)  # major and minor that this package was written for

_NAME = "libisobit.so"


def _candidates() -> list[Path]:
    """Places where the library may be, best first."""
    if named := os.environ.get("ISOBIT_LIBRARY"):
        return [Path(named)]
    package = Path(__file__).resolve().parent
    builds = sorted(package.parent.parent.glob(f"build/*/src/{_NAME}"), key=lambda p: p.stat().st_mtime, reverse=True)
    # <prefix>/lib/python3.x/site-packages/isobit: the prefix of an installed library is four folders up.
    prefixes = [package.parents[3] / "lib" / _NAME] if len(package.parents) > 3 else []
    return [package / _NAME, package / "lib" / _NAME, *builds, *prefixes]


def _load() -> ctypes.CDLL:
    candidates = _candidates()
    if os.environ.get("ISOBIT_LIBRARY") and not candidates[0].is_file():
        raise ImportError(f"ISOBIT_LIBRARY: expected the path of libisobit, got {candidates[0]}, which is not a file")
    for path in candidates:
        if path.is_file():
            return ctypes.CDLL(str(path))
    try:
        return ctypes.CDLL("libisobit.so.0.1")  # wherever the system's loader finds it
    except OSError as error:
        looked = ", ".join(str(path) for path in candidates)
        raise ImportError(f"libisobit was not found (set ISOBIT_LIBRARY to its path); looked at {looked}") from error


library = _load()
library.isobit_version.restype = ctypes.c_int32
library.isobit_last_error.restype = ctypes.c_char_p
library.isobit_status_string.restype = ctypes.c_char_p
library.isobit_status_string.argtypes = [ctypes.c_int32]
library.isobit_build_info.restype = ctypes.c_char_p

_number = library.isobit_version()
_found = (_number // 10000, _number // 100 % 100)
if _found != VERSION:
    raise ImportError(f"libisobit: expected version {VERSION[0]}.{VERSION[1]}, got {_found[0]}.{_found[1]}")


class Error(RuntimeError):
    """A call was refused. ``status`` is the C status; the text names argument, rule, expected and got."""

    def __init__(self, status: int, message: str):
        super().__init__(message)
        self.status = status


class InvalidArgumentError(Error, ValueError):
    """An argument breaks a rule of the operator's contract."""


def class_of(status: int) -> type[Error]:
    """The exception class of a status other than ISOBIT_OK."""
    return InvalidArgumentError if status == 1 else Error


def check(status: int) -> None:
    """Raises for any status but ISOBIT_OK (0). Nothing was launched or written then."""
    if status == 0:
        return
    message = library.isobit_last_error().decode() or library.isobit_status_string(status).decode()
    raise class_of(status)(status, message)
