"""What every operator of isobit.torch needs of a call: tensors as isobit_tensor, the current stream, workspace."""

from __future__ import annotations

import ctypes
import functools
import struct
import sys

import torch
from torch.autograd import forward_ad

from .. import _abi
from .._library import check
from .._shim import shim as _shim

_PACK = struct.Struct("=Q80s")  # isobit_tensor: the address, and what follows it
_TAIL = struct.Struct("=iiii8q")
assert _PACK.size == ctypes.sizeof(_abi.Tensor)

_DTYPES = {
    torch.bfloat16: _abi.BF16,
    torch.float16: _abi.FP16,
    torch.float32: _abi.FP32,
    torch.int32: _abi.INT32,
    torch.int64: _abi.INT64,
    torch.uint8: _abi.UINT8,
    torch.float8_e4m3fn: _abi.UINT8,
}
if hasattr(torch, "float4_e2m1fn_x2"):
    _DTYPES[torch.float4_e2m1fn_x2] = _abi.UINT8
# ROCm builds call their devices cuda as well; this library has nothing for them.
_DEVICES = {"cpu": _abi.CPU} if torch.version.hip else {"cpu": _abi.CPU, "cuda": _abi.CUDA}
PLAIN = (torch.Tensor, torch.nn.Parameter)

# The TVM-FFI functions read a tensor in C where PyTorch has DLPack's exchange table (2.10, or torch-c-dlpack-ext), with
# the current stream and PyTorch's allocator. Elsewhere, and without them, the calls below go through ctypes.
shim = _shim if hasattr(torch.Tensor, "__dlpack_c_exchange_api__") else None


@functools.lru_cache(maxsize=4096)
def _tail(shape: torch.Size, stride: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> bytes:
    """An isobit_tensor without its address. Cached: packing it anew doubles the time that a tensor costs."""
    if dtype not in _DTYPES:
        known = ", ".join(str(dtype).removeprefix("torch.") for dtype in _DTYPES)
        raise TypeError(f"expected one of {known}, got {dtype}")
    if device.type not in _DEVICES:
        raise TypeError(f"expected a tensor on {' or '.join(_DEVICES)}, got {device}")
    rank = len(shape)
    if rank > 4:
        raise ValueError(f"expected at most 4 dimensions, got {rank}")
    pad = (0,) * (4 - rank)
    return _TAIL.pack(_DTYPES[dtype], _DEVICES[device.type], device.index or 0, rank, *shape, *pad, *stride, *pad)


def put(args: ctypes.Structure, offset: int, name: str, tensor: torch.Tensor) -> None:
    """Writes the view of a tensor to byte `offset` of an args struct. The tensor must outlive the call."""
    try:
        tail = _tail(tensor.shape, tensor.stride(), tensor.dtype, tensor.device)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None
    _PACK.pack_into(args, offset, tensor.data_ptr(), tail)


@functools.cache
def offset(kind: type[ctypes.Structure], *path: str) -> int:
    """Byte offset of a field, or of a field of a field."""
    total = 0
    for name in path:
        total += getattr(kind, name).offset
        kind = dict(kind._fields_)[name]
    return total


def template(kind: type[ctypes.Structure]) -> bytes:
    """A zeroed struct with its size: what ``kind.from_buffer_copy`` makes args of."""
    return bytes(_abi.start(kind))


def _current_stream(device: torch.device) -> int:
    return torch.cuda.current_stream(device).cuda_stream


# The raw getter that Triton and Inductor use costs a tenth of the public call, which makes a Stream object.
_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)


def run(function, args: ctypes.Structure, device: torch.device, *more) -> None:
    """The call on the tensors' device and on the stream that is current there."""
    stream = None
    if device.type == "cuda":
        stream = ctypes.c_void_p(_raw_stream(device.index) if _raw_stream else _current_stream(device))
    check(function(ctypes.byref(args), *more, stream))


most_workspace: int | None = None  # bytes; where it is set, calls go through ctypes, which can ask for less


def set_workspace_limit(limit: int | None) -> None:
    """The most scratch memory, in bytes, that a call of this module takes from now on; None: as much as is useful.

    Rows then go in smaller pieces, in more time and with the same bits. Without a limit the backward pass of
    linear_logp takes at most 1 GiB, its forward pass less, and the NVFP4 products up to 2 bytes an element of x. A call
    that cannot do with the limit is refused, and says what it needs. One setting for the process.
    """
    global most_workspace  # noqa: PLW0603 - one setting for the process
    if limit is not None and limit < 0:
        raise ValueError(f"limit: expected a number of bytes, 0 or more, or None, got {limit}")
    most_workspace = limit


def add_workspace(function, args: ctypes.Structure, device: torch.device) -> torch.Tensor:
    """Gives args workspace of the recommended size, within the limit, out of PyTorch's allocator.

    Keep the result until the call has been made. After that it may go: the allocator hands memory on in stream order.
    """
    minimum, recommended = ctypes.c_size_t(), ctypes.c_size_t()
    check(function(ctypes.byref(args), ctypes.byref(minimum), ctypes.byref(recommended)))
    size = recommended.value if most_workspace is None else min(recommended.value, most_workspace)
    memory = torch.empty(size + 255, dtype=torch.uint8, device=device)
    address = memory.data_ptr()
    args.workspace, args.workspace_bytes = address + -address % 256, size
    return memory


def rows(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself if it is rows at one distance with adjacent elements, else a contiguous copy."""
    if tensor.is_contiguous():
        return tensor
    shape, stride = tensor.shape, tensor.stride()
    if stride[-1] != 1 or min(stride) < 0:
        return tensor.contiguous()
    for i in range(len(shape) - 2):
        if stride[i] != stride[i + 1] * shape[i + 1]:
            return tensor.contiguous()
    return tensor


is_compiling = torch.compiler.is_compiling
modes = torch._C._len_torch_dispatch_stack
is_tracing = torch._C._is_tracing
any_autocast = torch._C._is_any_autocast_enabled
transforms = torch._C._functorch.peek_interpreter_stack  # of torch.func: vmap, grad, jvp


def direct(first: torch.Tensor, *more: torch.Tensor | None) -> bool:
    """Whether a call may go past PyTorch's dispatcher: eager mode, plain tensors, nobody listening.

    The dispatcher costs more than the rest of a call. While compiling or tracing, under a mode (fake tensors, selective
    checkpointing), inside torch.func's transforms, where tensors may carry tangents of forward mode, with subclasses of
    Tensor, on the meta device or with a negation that has not been carried out the registered operator is what has to
    be called.
    """
    if is_compiling() or modes() or is_tracing() or transforms() is not None or first.is_meta:
        return False
    if forward_ad._current_level >= 0:
        return False
    if type(first) not in PLAIN or first.is_neg():
        return False
    for tensor in more:  # noqa: SIM110 - all() of a generator takes three times as long
        if tensor is not None and (type(tensor) not in PLAIN or tensor.is_neg()):
            return False
    return True


def refuse_distributed(op: str, **tensors: torch.Tensor | None) -> None:
    """TypeError for a DTensor: how its shards meet is the operator's business, not the dispatcher's."""
    module = sys.modules.get("torch.distributed.tensor")
    for name, tensor in tensors.items():
        if type(tensor) not in PLAIN and module and isinstance(tensor, module.DTensor):
            raise TypeError(
                f"isobit.{op}: {name}: expected a plain tensor, got a DTensor; pass {name}.to_local() or "
                f"{name}.full_tensor()"
            )


def refuse_tangents(op: str, **tensors: torch.Tensor | None) -> None:
    """NotImplementedError for a tangent of forward mode, which PyTorch drops without a word at operators like these."""
    if forward_ad._current_level < 0:
        return
    for name, tensor in tensors.items():
        if tensor is not None and forward_ad.unpack_dual(tensor).tangent is not None:
            raise NotImplementedError(
                f"isobit.{op}: {name}: expected a tensor without a tangent, got a dual tensor; no derivatives "
                "in forward mode"
            )
