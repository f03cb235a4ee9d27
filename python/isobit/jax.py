"""isobit's operators under JAX: geglu and linear_logp with their gradients, under jit, grad and vmap.

With the packages apache-tvm-ffi and jax-tvm-ffi (`pip install isobit[jax]`) they are custom calls of XLA on the CPU and
on CUDA devices, on XLA's stream; without them the CPU is served through jax.pure_callback, and GPUs are refused. Both
ways write the bytes of the NumPy calls. bfloat16 arrays are jax.numpy.bfloat16.
"""

from __future__ import annotations

import functools
import importlib.util

import jax

from ._linear_logp import LinearLogp
from ._shim import shim

if shim is not None and importlib.util.find_spec("jax_tvm_ffi") is not None:
    from . import _jax_ffi as _calls
else:
    from . import _jax_host as _calls

__all__ = ["geglu", "linear_logp"]


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _gated(gate, up, gelu, round_gelu):
    return _calls.geglu(gate, up, gelu, round_gelu)


def _gated_forward(gate, up, gelu, round_gelu):
    return _gated(gate, up, gelu, round_gelu), (gate, up)


def _gated_backward(gelu, round_gelu, kept, d_out):
    return _calls.geglu_backward(d_out, *kept, gelu, round_gelu)


_gated.defvjp(_gated_forward, _gated_backward)


def geglu(gate: jax.Array, up: jax.Array, *, gelu: str, round_gelu: bool = False) -> jax.Array:
    """gelu(gate) * up: isobit.geglu's bytes. Differentiable once, in reverse.

    Args:
        gate: [..., I], bfloat16, float16 or float32, at most 4 dimensions (vmap adds one).
        up: shape and dtype of gate.
        gelu: "tanh" or "erf"; there is no default.
        round_gelu: round gelu(gate) to the dtype before it is multiplied.
    """
    if gate.shape != up.shape or gate.dtype != up.dtype:
        raise ValueError(f"up: expected {gate.dtype} {gate.shape} as gate has, got {up.dtype} {up.shape}")
    return _gated(gate, up, gelu, round_gelu)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _head(options, hidden, weight, target, bias):
    return _calls.linear_logp(dict(options), hidden, weight, target, bias)


def _head_forward(options, hidden, weight, target, bias):
    outputs, saved = _calls.linear_logp_save(dict(options), hidden, weight, target, bias)
    return outputs, (hidden, weight, target, bias, saved)


def _head_backward(options, kept, upstream):
    d_hidden, d_weight, *d_bias = _calls.linear_logp_backward(dict(options), *kept, upstream)
    return d_hidden, d_weight, None, d_bias[0] if d_bias else None


_head.defvjp(_head_forward, _head_backward)


def linear_logp(
    hidden: jax.Array,
    weight: jax.Array,
    target: jax.Array,
    *,
    bias: jax.Array | None = None,
    temperature: float = 1.0,
    softcap: float = 0.0,
    ignore_index: int | None = -100,
    vocab_size: int = 0,
) -> LinearLogp:
    """Log-probabilities of tokens without the [N, V] logits: isobit.linear_logp's bytes, differentiable once.

    Args:
        hidden: [N, H] bfloat16 (without gradients float16 too).
        weight: [V, H], dtype of hidden.
        target: [N] or [N, K], int32 or int64 token ids.
        bias: [V] bfloat16, float16 or float32.
        temperature: one number > 0.
        softcap: c > 0 replaces every logit t by c * tanh(t / c); 0: none.
        ignore_index: target id whose row gives +0 and no gradient; None: no id is special.
        vocab_size: number of weight rows that exist; 0: all.

    Returns:
        LinearLogp with logp (target's shape), lse [N] and entropy [N] in float32.
    """
    options = {"temperature": temperature, "softcap": softcap, "ignore_index": ignore_index, "vocab_size": vocab_size}
    return LinearLogp(*_head(tuple(options.items()), hidden, weight, target, bias))
