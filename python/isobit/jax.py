"""isobit's operators under JAX, on the CPU: geglu and linear_logp with their gradients, under jit, grad and vmap.

The calls go to the host through jax.pure_callback, so arrays of a GPU are refused rather than moved. bfloat16 arrays
are jax.numpy.bfloat16.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from . import _geglu, _linear_logp, _linear_logp_backward
from ._linear_logp import LinearLogp

__all__ = ["geglu", "linear_logp"]


def _on_the_host(function, shapes, *arrays, vmap_method: str):
    if jax.default_backend() != "cpu":
        raise NotImplementedError(f"isobit.jax: expected the CPU backend of JAX, got {jax.default_backend()}")

    def call(*views):
        return function(*(None if view is None else np.asarray(view) for view in views))

    return jax.pure_callback(call, shapes, *arrays, vmap_method=vmap_method)


def _like(array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2, 3))
def _gated(gate, up, gelu, round_gelu):
    call = functools.partial(_geglu.geglu, gelu=gelu, round_gelu=round_gelu)
    return _on_the_host(call, _like(gate), gate, up, vmap_method="broadcast_all")


def _gated_forward(gate, up, gelu, round_gelu):
    return _gated(gate, up, gelu, round_gelu), (gate, up)


def _gated_backward(gelu, round_gelu, kept, d_out):
    gate, up = kept
    call = functools.partial(_geglu.geglu_backward, gelu=gelu, round_gelu=round_gelu)
    return _on_the_host(call, (_like(gate), _like(up)), d_out, gate, up, vmap_method="broadcast_all")


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


def _score(options, hidden, weight, target, bias):
    found = _linear_logp.linear_logp(hidden, weight, target, bias=bias, want=("logp", "lse", "entropy"), **options)
    return found.logp, found.lse, found.entropy


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _head(options, hidden, weight, target, bias):
    per_row = jax.ShapeDtypeStruct(hidden.shape[:1], jnp.float32)
    shapes = (jax.ShapeDtypeStruct(target.shape, jnp.float32), per_row, per_row)
    call = functools.partial(_score, dict(options))
    return _on_the_host(call, shapes, hidden, weight, target, bias, vmap_method="sequential")


def _head_forward(options, hidden, weight, target, bias):
    return _head(options, hidden, weight, target, bias), (hidden, weight, target, bias)


def _gradients(options, dtypes, hidden, weight, target, bias, *upstream):
    want = ("hidden", "weight", "bias") if bias is not None else ("hidden", "weight")
    names = ("d_logp", "d_lse", "d_entropy")
    found = _linear_logp_backward.linear_logp_backward(
        hidden, weight, target, bias=bias, want=want, subtract_p=True, **dict(zip(names, upstream)), **options
    )
    return tuple(array.astype(dtype) for array, dtype in zip(found, dtypes) if array is not None)


def _head_backward(options, kept, upstream):
    hidden, weight, target, bias = kept
    inputs = [array for array in (hidden, weight, bias) if array is not None]
    call = functools.partial(_gradients, dict(options), [array.dtype for array in inputs])
    found = _on_the_host(call, tuple(map(_like, inputs)), hidden, weight, target, bias, *upstream,
                         vmap_method="sequential")  # fmt: skip
    return found[0], found[1], None, found[2] if bias is not None else None


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
        LinearLogp with logp (target's shape), lse [N] and entropy [N] in float32. What is not used costs no gradient.
    """
    options = {"temperature": temperature, "softcap": softcap, "ignore_index": ignore_index, "vocab_size": vocab_size}
    return LinearLogp(*_head(tuple(options.items()), hidden, weight, target, bias))
