"""isobit's operators on CuPy arrays: geglu, its gradient, and linear_logp with its gradients.

A call runs on its arrays' device and on the CuPy stream that is current there, with memory out of CuPy's pool; it never
synchronises. bfloat16 arrays are uint16 bits, or ml_dtypes.bfloat16 where CuPy has it. The bytes are those of the calls
on NumPy arrays.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import cupy

from . import _abi
from ._geglu import make
from ._library import check, library
from ._linear_logp import LinearLogp, fill, outputs_of
from ._linear_logp_backward import LinearLogpGradients
from ._tensor import describe

__all__ = ["geglu", "geglu_backward", "linear_logp", "linear_logp_backward"]


def _view(name: str, array: cupy.ndarray | None) -> _abi.Tensor:
    if array is None:
        return _abi.Tensor()
    if not isinstance(array, cupy.ndarray):
        raise TypeError(f"{name}: expected a CuPy array, got {type(array).__name__}")
    return describe(name, array, array.data.ptr, _abi.CUDA, array.device.id)


def _run(function, args, *more) -> None:
    check(function(ctypes.byref(args), *more, ctypes.c_void_p(cupy.cuda.get_current_stream().ptr)))


def _workspace(query, args, forward) -> cupy.ndarray:
    """Scratch memory of the recommended size. CuPy's pool hands it on in stream order once it is let go."""
    minimum, recommended = ctypes.c_size_t(), ctypes.c_size_t()
    check(query(ctypes.byref(args), ctypes.byref(minimum), ctypes.byref(recommended)))
    memory = cupy.empty(recommended.value, cupy.uint8)  # at a multiple of 512 bytes
    forward.workspace, forward.workspace_bytes = memory.data.ptr, recommended.value
    return memory


def geglu(gate: cupy.ndarray, up: cupy.ndarray, *, gelu: str, round_gelu: bool = False) -> cupy.ndarray:
    """gelu(gate) * up as a new array.

    Args:
        gate: [..., I], 1 to 4 dimensions, bfloat16 (uint16 bits), float16 or float32. Rows at one distance.
        up: shape, dtype and device of gate; the halves of one array or the columns of an [..., I, 2] one too.
        gelu: "tanh" or "erf"; there is no default.
        round_gelu: round gelu(gate) to the dtype before it is multiplied.

    Raises:
        isobit.InvalidArgumentError (a ValueError), isobit.Error: the library's message. TypeError: not a CuPy array of
        a known dtype.
    """
    with gate.device:
        out = cupy.empty(gate.shape, gate.dtype)
        arrays = {"gate": gate, "up": up, "out": out}
        args = make(_abi.GegluForwardArgs, arrays, gelu, round_gelu=round_gelu, view=_view)
        _run(library.isobit_geglu_forward, args)
    return out


def geglu_backward(
    d_out: cupy.ndarray, gate: cupy.ndarray, up: cupy.ndarray, *, gelu: str, round_gelu: bool = False
) -> tuple[cupy.ndarray, cupy.ndarray]:
    """Gradients (d_gate, d_up) as new arrays; arguments as in geglu, d_out of gate's shape and dtype."""
    with gate.device:
        d_gate, d_up = cupy.empty(gate.shape, gate.dtype), cupy.empty(gate.shape, gate.dtype)
        arrays = {"gate": gate, "up": up, "d_out": d_out, "d_gate": d_gate, "d_up": d_up}
        args = make(_abi.GegluBackwardArgs, arrays, gelu, round_gelu=round_gelu, view=_view)
        _run(library.isobit_geglu_backward, args)
    return d_gate, d_up


def linear_logp(
    hidden: cupy.ndarray,
    weight: cupy.ndarray,
    target: cupy.ndarray,
    *,
    bias: cupy.ndarray | None = None,
    temperature: float | cupy.ndarray = 1.0,
    softcap: float = 0.0,
    ignore_index: int | None = -100,
    vocab_size: int = 0,
    want: Sequence[str] = ("logp", "lse"),
    top: int = 0,
) -> LinearLogp:
    """Log-probabilities of tokens without the [N, V] logits; arguments and errors as in isobit.linear_logp.

    hidden [N, H] and weight [V, H] are bfloat16 (uint16 bits) or float16, target [N] or [N, K] int32 or int64, all on
    one device. Returns a LinearLogp of new arrays.
    """
    with hidden.device:
        outputs = outputs_of(target, want, top, cupy.empty)
        args = _abi.start(_abi.LinearLogpArgs)
        fill(args, hidden, weight, target, outputs, bias=bias, temperature=temperature, softcap=softcap,
             ignore_index=ignore_index, vocab_size=vocab_size, view=_view)  # fmt: skip
        memory = _workspace(library.isobit_linear_logp_workspace, args, args)
        _run(library.isobit_linear_logp, args)
        del memory
    return outputs


def linear_logp_backward(
    hidden: cupy.ndarray,
    weight: cupy.ndarray,
    target: cupy.ndarray,
    *,
    d_logp: cupy.ndarray | None = None,
    d_lse: cupy.ndarray | None = None,
    d_entropy: cupy.ndarray | None = None,
    bias: cupy.ndarray | None = None,
    temperature: float | cupy.ndarray = 1.0,
    softcap: float = 0.0,
    ignore_index: int | None = -100,
    vocab_size: int = 0,
    want: Sequence[str] = ("hidden", "weight"),
) -> LinearLogpGradients:
    """Gradients of hidden, weight and bias (float32) from those of logp, lse and entropy (float32, at least one).

    hidden and weight are bfloat16; arguments and errors as in isobit.linear_logp_backward, ``want`` out of hidden,
    weight, bias.
    """
    shapes = {"hidden": hidden.shape, "weight": weight.shape, "bias": weight.shape[:1]}
    with hidden.device:
        gradients = LinearLogpGradients(**{name: cupy.empty(shapes[name], cupy.float32) for name in want})
        args = _abi.start(_abi.LinearLogpBackwardArgs)
        args.subtract_p = 1
        fill(args.forward, hidden, weight, target, LinearLogp(), bias=bias, temperature=temperature, softcap=softcap,
             ignore_index=ignore_index, vocab_size=vocab_size, view=_view)  # fmt: skip
        for name, array in (("d_logp", d_logp), ("d_lse", d_lse), ("d_entropy", d_entropy)):
            setattr(args, name, _view(name, array))
        for name, array in gradients._asdict().items():
            setattr(args, f"d_{name}", _view(f"d_{name}", array))
        memory = _workspace(library.isobit_linear_logp_backward_workspace, args, args.forward)
        _run(library.isobit_linear_logp_backward, args)
        del memory
    return gradients
