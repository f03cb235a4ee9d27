"""The C structures and codes of include/isobit/*.h, field for field. Every binding of this package fills these."""

from __future__ import annotations

import ctypes

NONE, BF16, FP16, FP32, INT32, INT64, UINT8 = range(7)
CPU, CUDA = 1, 2
GELU = {"tanh": 1, "erf": 2}
LAYOUTS = {"linear": 0, "128x4": 1, "8x4": 2}


def code(table: dict[str, int], argument: str, name: str) -> int:
    """The number of an option; ValueError names the argument, what was expected and what was found."""
    if name not in table:
        raise ValueError(f"{argument}: expected {' or '.join(map(repr, table))}, got {name!r}")
    return table[name]


class Tensor(ctypes.Structure):
    """isobit_tensor."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_int32),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.c_int64 * 4),
        ("stride", ctypes.c_int64 * 4),
    ]


class KernelInfo(ctypes.Structure):
    """isobit_kernel_info."""

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


_HEAD = [("struct_size", ctypes.c_uint32), ("threads", ctypes.c_int32), ("kernel", ctypes.c_char_p)]
_WORKSPACE = [("workspace", ctypes.c_void_p), ("workspace_bytes", ctypes.c_size_t)]


class GegluForwardArgs(ctypes.Structure):
    """isobit_geglu_forward_args."""

    _fields_ = [
        *_HEAD,
        ("gate", Tensor),
        ("up", Tensor),
        ("out", Tensor),
        ("gelu", ctypes.c_int32),
        ("round_gelu", ctypes.c_int32),
    ]


class GegluBackwardArgs(ctypes.Structure):
    """isobit_geglu_backward_args."""

    _fields_ = [
        *_HEAD,
        ("gate", Tensor),
        ("up", Tensor),
        ("d_out", Tensor),
        ("d_gate", Tensor),
        ("d_up", Tensor),
        ("gelu", ctypes.c_int32),
        ("round_gelu", ctypes.c_int32),
        ("in_place", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class LinearLogpArgs(ctypes.Structure):
    """isobit_linear_logp_args."""

    _fields_ = [
        *_HEAD,
        ("hidden", Tensor),
        ("weight", Tensor),
        ("bias", Tensor),
        ("target", Tensor),
        ("temperature", Tensor),
        ("first_id", ctypes.c_int64),
        ("vocab_size", ctypes.c_int64),
        ("ignore_index", ctypes.c_int64),
        ("use_ignore_index", ctypes.c_int32),
        ("temperature_value", ctypes.c_float),
        ("softcap", ctypes.c_float),
        ("reserved", ctypes.c_int32),
        ("logp", Tensor),
        ("lse", Tensor),
        ("entropy", Tensor),
        ("rank", Tensor),
        ("target_logit", Tensor),
        ("top_id", Tensor),
        ("top_logp", Tensor),
        *_WORKSPACE,
    ]


class LinearLogpState(ctypes.Structure):
    """isobit_linear_logp_state."""

    _fields_ = [("first_id", ctypes.c_int64), ("count", ctypes.c_int64), ("data", ctypes.c_void_p)]


class LinearLogpBackwardArgs(ctypes.Structure):
    """isobit_linear_logp_backward_args."""

    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("accumulate", ctypes.c_int32),
        ("forward", LinearLogpArgs),
        ("d_logp", Tensor),
        ("d_lse", Tensor),
        ("d_entropy", Tensor),
        ("d_hidden", Tensor),
        ("d_weight", Tensor),
        ("d_bias", Tensor),
        ("saved", ctypes.c_void_p),
        ("subtract_p", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
    ]


class Nvfp4Matrix(ctypes.Structure):
    """isobit_nvfp4_matrix."""

    _fields_ = [("codes", Tensor), ("scales", Tensor), ("layout", ctypes.c_int32), ("reserved", ctypes.c_int32)]


class Nvfp4Scale(ctypes.Structure):
    """isobit_nvfp4_scale."""

    _fields_ = [("tensor", Tensor), ("value", ctypes.c_float), ("reserved", ctypes.c_int32)]


class Nvfp4QuantizeArgs(ctypes.Structure):
    """isobit_nvfp4_quantize_args."""

    _fields_ = [*_HEAD, ("x", Tensor), ("global_scale", Nvfp4Scale), ("out", Nvfp4Matrix)]


class Nvfp4LinearArgs(ctypes.Structure):
    """isobit_nvfp4_linear_args."""

    _fields_ = [
        *_HEAD,
        ("x", Nvfp4Matrix),
        ("weight", Nvfp4Matrix),
        ("x_scale", Nvfp4Scale),
        ("weight_scale", Nvfp4Scale),
        ("out", Tensor),
        *_WORKSPACE,
    ]


class Nvfp4GegluArgs(ctypes.Structure):
    """isobit_nvfp4_geglu_args."""

    _fields_ = [
        *_HEAD,
        ("x", Nvfp4Matrix),
        ("weight", Nvfp4Matrix),
        ("x_scale", Nvfp4Scale),
        ("gate_scale", Nvfp4Scale),
        ("up_scale", Nvfp4Scale),
        ("out_scale", Nvfp4Scale),
        ("out", Nvfp4Matrix),
        ("gelu", ctypes.c_int32),
        ("reserved", ctypes.c_int32),
        *_WORKSPACE,
    ]


def start(kind, kernel: str | None = None, threads: int = 0):
    """A zeroed args struct with its head filled in."""
    args = kind(struct_size=ctypes.sizeof(kind))
    head = args
    if kind is LinearLogpBackwardArgs:
        head = args.forward
        head.struct_size = ctypes.sizeof(LinearLogpArgs)
    head.threads, head.kernel = threads, kernel.encode() if kernel is not None else None
    return args
