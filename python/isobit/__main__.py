"""``python -m isobit``: the build that is loaded and its kernels, the text to paste into a bug report."""

import importlib.metadata
import platform

from . import build_info, has_cuda, kernels
from ._library import library

_PACKAGES = ("numpy", "torch", "apache-tvm-ffi", "jax", "jax-tvm-ffi", "cupy-cuda13x", "transformers")


def _versions() -> str:
    """Python and the packages that a call may go through, as they are installed; none is imported."""
    found = [f"Python {platform.python_version()}"]
    for name in _PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return ", ".join(found)


def main() -> None:
    print(build_info())
    print(f"library {library._name}")
    print(_versions())
    if not has_cuda():
        print("CPU backend only: nvcc was not there when the library was built, so it has no GPU kernel")
    rows = [(row.op, row.kernel, row.contract, "usable" if row.usable else row.reason) for row in kernels()]
    widths = [max(map(len, column)) for column in zip(*rows)][:3]
    for row in rows:
        print(*(word.ljust(width) for word, width in zip(row, widths)), row[3], sep="  ")


if __name__ == "__main__":
    main()
