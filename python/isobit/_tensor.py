"""NumPy arrays as isobit_tensor, and the 16-bit formats that NumPy lacks."""

from __future__ import annotations

import numpy as np

from ._abi import BF16, CPU, FP16, FP32, INT32, INT64, UINT8, Tensor

_DTYPES = {"uint16": BF16, "bfloat16": BF16, "float16": FP16, "float32": FP32, "int32": INT32, "int64": INT64,
           "uint8": UINT8}  # fmt: skip


def describe(name: str, array, address: int, device_type: int, device_id: int = 0) -> Tensor:
    """The view of an array with NumPy's dtype, shape and strides. The array must outlive the call.

    bfloat16 is uint16 (its bits) or a NumPy extension type called bfloat16. Raises TypeError for an unknown dtype and
    ValueError for strides that are not whole elements.
    """
    if array.dtype.name not in _DTYPES or not array.dtype.isnative:
        raise TypeError(f"{name}: expected one of {', '.join(_DTYPES)}, got {array.dtype}")
    if array.ndim > 4:
        raise ValueError(f"{name}: expected at most 4 dimensions, got {array.ndim}")
    if any(stride % array.itemsize for stride in array.strides):
        raise ValueError(f"{name}: expected strides of whole elements, got {array.strides} bytes")
    tensor = Tensor()
    tensor.data = address
    tensor.dtype = _DTYPES[array.dtype.name]
    tensor.device_type = device_type
    tensor.device_id = device_id
    tensor.rank = array.ndim
    for i in range(array.ndim):
        tensor.shape[i] = array.shape[i]
        tensor.stride[i] = array.strides[i] // array.itemsize
    return tensor


def view(name: str, array: np.ndarray | None) -> Tensor:
    """describe() of a NumPy array; None gives an absent tensor. Raises TypeError for anything else as well."""
    if array is None:
        return Tensor()
    if not isinstance(array, np.ndarray):
        raise TypeError(f"{name}: expected a NumPy array, got {type(array).__name__}")
    return describe(name, array, array.ctypes.data, CPU)


def require_writeable(**arrays: np.ndarray) -> None:
    """Raises ValueError for an output that NumPy calls read-only: a mapped file, or memory that others rely on."""
    for name, array in arrays.items():
        if isinstance(array, np.ndarray) and not array.flags.writeable:
            raise ValueError(f"{name}: expected an array that may be written to, got a read-only one")


def address_of_bytes(name: str, array: np.ndarray, least: int) -> int:
    """Address of what the library wrote before, `least` bytes or more. Raises TypeError or ValueError otherwise."""
    if not isinstance(array, np.ndarray) or array.dtype != np.uint8 or not array.flags.c_contiguous:
        raise TypeError(f"{name}: expected a contiguous uint8 array")
    if array.size < least:
        raise ValueError(f"{name}: expected {least} bytes or more, got {array.size}")
    return array.ctypes.data


def aligned_bytes(count: int) -> np.ndarray:
    """uint8 [count], uninitialised, its first byte at a multiple of 256."""
    raw = np.empty(count + 255, np.uint8)
    start = -raw.ctypes.data % 256
    return raw[start : start + count]


def to_bf16(values: np.ndarray) -> np.ndarray:
    """float32 values of any shape -> bfloat16 bits as uint16, rounded to nearest even; NaN becomes 0x7FFF."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) >> np.uint64(16)
    return np.where(np.isnan(values), 0x7FFF, rounded).astype(np.uint16)


def from_bf16(bits: np.ndarray) -> np.ndarray:
    """bfloat16 bits as uint16, any shape -> float32, exactly."""
    return (np.asarray(bits, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)
