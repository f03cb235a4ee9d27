"""isobit.jax without jax-tvm-ffi: the NumPy calls behind jax.pure_callback, on the CPU alone."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from . import _geglu, _linear_logp, _linear_logp_backward


def _on_the_host(function, shapes, *arrays, vmap_method: str):
    if jax.default_backend() != "cpu":
        raise NotImplementedError(
            f"isobit.jax: expected the packages apache-tvm-ffi and jax-tvm-ffi, and the library's shim, for arrays on "
            f"{jax.default_backend()}"
        )

    def call(*views):
        return function(*(None if view is None else np.asarray(view) for view in views))

    return jax.pure_callback(call, shapes, *arrays, vmap_method=vmap_method)


def like(array) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


def geglu(gate, up, gelu: str, round_gelu: bool):
    call = functools.partial(_geglu.geglu, gelu=gelu, round_gelu=round_gelu)
    return _on_the_host(call, like(gate), gate, up, vmap_method="broadcast_all")


def geglu_backward(d_out, gate, up, gelu: str, round_gelu: bool):
    call = functools.partial(_geglu.geglu_backward, gelu=gelu, round_gelu=round_gelu)
    return _on_the_host(call, (like(gate), like(up)), d_out, gate, up, vmap_method="broadcast_all")


def _score(options, hidden, weight, target, bias):
    found = _linear_logp.linear_logp(hidden, weight, target, bias=bias, want=("logp", "lse", "entropy"), **options)
    return found.logp, found.lse, found.entropy


def linear_logp(options: dict, hidden, weight, target, bias):
    """(logp, lse, entropy)."""
    per_row = jax.ShapeDtypeStruct(hidden.shape[:1], jnp.float32)
    shapes = (jax.ShapeDtypeStruct(target.shape, jnp.float32), per_row, per_row)
    call = functools.partial(_score, options)
    return _on_the_host(call, shapes, hidden, weight, target, bias, vmap_method="sequential")


def linear_logp_save(options: dict, hidden, weight, target, bias):
    """(logp, lse, entropy) and no record: the backward pass makes its own."""
    return linear_logp(options, hidden, weight, target, bias), None


def _gradients(options, dtypes, hidden, weight, target, bias, *upstream):
    want = ("hidden", "weight", "bias") if bias is not None else ("hidden", "weight")
    names = ("d_logp", "d_lse", "d_entropy")
    found = _linear_logp_backward.linear_logp_backward(
        hidden, weight, target, bias=bias, want=want, subtract_p=True, **dict(zip(names, upstream)), **options
    )
    return tuple(array.astype(dtype) for array, dtype in zip(found, dtypes) if array is not None)


def linear_logp_backward(options: dict, hidden, weight, target, bias, saved, upstream):
    """Gradients of hidden, weight and, if there is one, bias."""
    inputs = [array for array in (hidden, weight, bias) if array is not None]
    call = functools.partial(_gradients, options, [array.dtype for array in inputs])
    return _on_the_host(call, tuple(map(like, inputs)), hidden, weight, target, bias, *upstream,
                        vmap_method="sequential")  # fmt: skip
