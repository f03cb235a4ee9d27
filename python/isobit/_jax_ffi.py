"""isobit.jax through jax-tvm-ffi: the library's functions as custom calls of XLA, on the CPU and on CUDA devices.

XLA gives a call dense buffers, its stream and, as a further result, its workspace. Where the C interface has an absent
tensor the shim takes one of shape [0, 0].
"""

from __future__ import annotations

import ctypes

import jax
import jax.numpy as jnp
import jax_tvm_ffi
import numpy as np

from . import _abi
from ._library import check, library
from ._shim import shim

_DTYPES = {"bfloat16": _abi.BF16, "float16": _abi.FP16, "float32": _abi.FP32, "int32": _abi.INT32, "int64": _abi.INT64}
_OPTIONS = ["temperature", "softcap", "use_ignore_index", "ignore_index", "vocab_size"]
_TARGETS = {
    "geglu_forward": ["args", "rets", "attrs.gelu", "attrs.round_gelu"],
    "geglu_backward": ["args", "rets", "attrs.gelu", "attrs.round_gelu"],
    **{
        name: ["args", *(f"attrs.{option}" for option in _OPTIONS), "rets"]
        for name in ("linear_logp", "linear_logp_save", "linear_logp_backward")
    },
}

for _name, _order in _TARGETS.items():
    for _platform in ("cpu", "gpu"):
        jax_tvm_ffi.register_ffi_target(
            f"isobit_{_name}", getattr(shim, _name), _order, platform=_platform, allow_cuda_graph=True
        )


def _call(name: str, shapes, *arrays, vmap_method: str, **attributes):
    return jax.ffi.ffi_call(f"isobit_{name}", shapes, vmap_method=vmap_method)(*arrays, **attributes)


def _like(array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


def geglu(gate, up, gelu: str, round_gelu: bool):
    options = {"gelu": _abi.code(_abi.GELU, "gelu", gelu), "round_gelu": round_gelu}
    return _call("geglu_forward", _like(gate), gate, up, vmap_method="broadcast_all", **options)


def geglu_backward(d_out, gate, up, gelu: str, round_gelu: bool):
    options = {"gelu": _abi.code(_abi.GELU, "gelu", gelu), "round_gelu": round_gelu}
    return _call("geglu_backward", (_like(gate), _like(up)), d_out, gate, up, vmap_method="broadcast_all", **options)


def _describe(array, device_type: int, number: int) -> _abi.Tensor:
    """The view of an array that is known by shape and dtype; queries read no data, but want addresses that differ."""
    tensor = _abi.Tensor()
    if array is None:
        return tensor
    if array.dtype.name not in _DTYPES:
        raise TypeError(f"expected arrays of {', '.join(_DTYPES)}, got {array.dtype}")
    tensor.data, tensor.dtype, tensor.device_type = (number + 1) << 48, _DTYPES[array.dtype.name], device_type
    tensor.rank, step = len(array.shape), 1
    for i in reversed(range(tensor.rank)):
        tensor.shape[i], tensor.stride[i] = array.shape[i], step
        step *= max(array.shape[i], 1)
    return tensor


def _args(options: dict, arrays: dict, device_type: int) -> _abi.LinearLogpBackwardArgs:
    """A call as a query takes it: arrays by the names of the fields, those of the forward pass among them."""
    args = _abi.start(_abi.LinearLogpBackwardArgs)
    args.subtract_p = 1  # as the shim has it
    forward = args.forward
    forward.temperature_value, forward.softcap = options["temperature"], options["softcap"]
    forward.vocab_size, forward.use_ignore_index = options["vocab_size"], options["use_ignore_index"]
    for number, (name, array) in enumerate(arrays.items()):
        setattr(args if name.startswith("d_") else forward, name, _describe(array, device_type, number))
    return args


def _size(query, options: dict, arrays: dict, device_type: int) -> int:
    args = _args(options, arrays, device_type)
    minimum, recommended = ctypes.c_size_t(), ctypes.c_size_t()
    root = args.forward if query is library.isobit_linear_logp_workspace else args
    check(query(ctypes.byref(root), ctypes.byref(minimum), ctypes.byref(recommended)))
    return recommended.value


def _workspace(query, options: dict, arrays: dict) -> jax.ShapeDtypeStruct:
    """Bytes that suffice on the CPU and on the first GPU: where the call will run is not known when it is traced."""
    devices = [_abi.CPU] + [_abi.CUDA] * (library.isobit_device_count() > 0)
    size = max(_size(query, options, arrays, device) for device in devices)
    return jax.ShapeDtypeStruct((size + 255,), jnp.uint8)


def _attributes(options: dict) -> dict:
    ignored = options["ignore_index"]
    return {
        "temperature": float(options["temperature"]),
        "softcap": float(options["softcap"]),
        "use_ignore_index": ignored is not None,
        "ignore_index": np.int64(ignored or 0),
        "vocab_size": np.int64(options["vocab_size"]),
    }


_ABSENT = jax.ShapeDtypeStruct((0, 0), jnp.float32)


def _optional(array):
    return jnp.zeros((0, 0), jnp.float32) if array is None else array


def _outputs(hidden, weight, target, bias) -> dict:
    per_row = jax.ShapeDtypeStruct(hidden.shape[:1], jnp.float32)
    return {"logp": jax.ShapeDtypeStruct(target.shape, jnp.float32), "lse": per_row, "entropy": per_row}


def _given(hidden, weight, target, bias):
    return hidden, weight, target, _optional(bias), _optional(None)


def _named(hidden, weight, target, bias) -> dict:
    return {"hidden": hidden, "weight": weight, "target": target, "bias": bias}


def linear_logp(options: dict, *inputs):
    """(logp, lse, entropy)."""
    attributes, outputs = _attributes(options), _outputs(*inputs)
    arrays = {**_named(*inputs), **outputs}
    memory = _workspace(library.isobit_linear_logp_workspace, attributes, arrays)
    return _call("linear_logp", (*outputs.values(), *[_ABSENT] * 4, memory), *_given(*inputs),
                 vmap_method="sequential", **attributes)[:3]  # fmt: skip


def linear_logp_save(options: dict, *inputs):
    """(logp, lse, entropy), and what the backward pass needs of this one."""
    attributes, outputs = _attributes(options), _outputs(*inputs)
    arrays = {**_named(*inputs), **outputs}
    memory = _workspace(library.isobit_linear_logp_backward_workspace, attributes, arrays)
    size = ctypes.c_size_t()
    args = _args(attributes, arrays, _abi.CPU)  # the layout is one for all devices
    check(library.isobit_linear_logp_saved_bytes(ctypes.byref(args), ctypes.byref(size)))
    record = jax.ShapeDtypeStruct((size.value,), jnp.uint8)
    *found, saved, _ = _call("linear_logp_save", (*outputs.values(), record, memory), *_given(*inputs),
                             vmap_method="sequential", **attributes)  # fmt: skip
    return tuple(found), saved


def linear_logp_backward(options: dict, hidden, weight, target, bias, saved, upstream):
    """Gradients of hidden, weight and, if there is one, bias."""
    attributes, inputs = _attributes(options), (hidden, weight, target, bias)
    d_bias = None if bias is None else jax.ShapeDtypeStruct(bias.shape, jnp.float32)
    gradients = {"d_hidden": _like(hidden), "d_weight": _like(weight), "d_bias": d_bias}
    arrays = {**_named(*inputs), **dict(zip(("d_logp", "d_lse", "d_entropy"), upstream)), **gradients}
    memory = _workspace(library.isobit_linear_logp_backward_workspace, attributes, arrays)
    shapes = [_ABSENT if array is None else array for array in gradients.values()]
    found = _call("linear_logp_backward", (*shapes, memory), *_given(*inputs), *upstream, saved,
                  vmap_method="sequential", **attributes)  # fmt: skip
    return found[:2] if bias is None else (*found[:2], found[2].astype(bias.dtype))
