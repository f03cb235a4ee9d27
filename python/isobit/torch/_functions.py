"""linear_logp of isobit.torch: arguments as users have them, brought to the registered operators."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import torch
from torch.autograd import forward_ad

from .._abi import LinearLogpArgs
from .._library import library
from .._linear_logp import LinearLogp
from . import _call
from . import _linear_logp as _ops
from ._call import (
    PLAIN,
    any_autocast,
    direct,
    is_compiling,
    is_tracing,
    modes,
    refuse_distributed,
    refuse_tangents,
    transforms,
)

_WANTED = ("logp", "lse", "entropy", "rank", "target_logit")
_make_tuple = tuple.__new__  # what a NamedTuple's own constructor calls, less its defaults
_PLAIN_WANTS = {
    ("logp",): (True, False, False),
    ("logp", "lse"): (True, True, False),
    ("logp", "entropy"): (True, False, True),
    ("logp", "lse", "entropy"): (True, True, True),
}


def _two_dimensional(hidden, target, temperature):
    """hidden [N, H] and target [N] or [N, K] out of any leading dimensions."""
    lead = hidden.shape[:-1]
    if target.shape[: len(lead)] != lead or target.dim() not in (len(lead), len(lead) + 1):
        raise ValueError(f"target: expected {list(lead)} or {[*lead, 'K']}, got {list(target.shape)}")
    tail = target.shape[len(lead) :]
    if temperature is not None and temperature.dim() > 1:
        temperature = temperature.reshape(-1)
    return hidden.reshape(-1, hidden.shape[-1]), target.reshape(-1, *tail), temperature


def _cast(hidden, weight):
    """Under autocast the two become its dtype, as the operands of a linear layer do."""
    kind = "cuda" if hidden.is_cuda else hidden.device.type
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        return hidden.to(dtype), weight.to(dtype)
    return hidden, weight


def _wants_gradient(*tensors) -> bool:
    if torch.is_grad_enabled():
        for tensor in tensors:  # as in direct()
            if tensor is not None and tensor.requires_grad:
                return True
    return False


def _plain_call(hidden, weight, target, temperature, softcap, ignore_index, vocab_size, wants) -> LinearLogp | None:
    """Scoring in as little Python as it takes: direct() written out, no gradients. None for a call of another kind, and
    for one that the shim refuses: the long way copies, casts or says what is wrong."""
    if (
        _ops.by_shim is None
        or _call.most_workspace is not None
        or is_compiling()
        or modes()
        or is_tracing()
        or transforms() is not None
        or forward_ad._current_level >= 0
        or not (type(hidden) in PLAIN and type(weight) in PLAIN and type(target) in PLAIN)
        or hidden.requires_grad
        or weight.requires_grad
        or hidden.dtype is not torch.bfloat16  # which carries no negation
        or target.dim() != 1
        or any_autocast()
    ):
        return None
    try:
        logp = torch.empty_like(target, dtype=torch.float32) if wants[0] else None
        lse = torch.empty_like(target, dtype=torch.float32) if wants[1] else None
        entropy = torch.empty_like(target, dtype=torch.float32) if wants[2] else None
        _ops.by_shim(hidden, weight, target, None, None, temperature, softcap, ignore_index is not None,
                     ignore_index or 0, vocab_size, logp, lse, entropy, None, None, None, None, None)  # fmt: skip
        return _make_tuple(LinearLogp, (logp, lse, entropy, None, None, None, None))
    except (TypeError, ValueError, RuntimeError):
        return None


def linear_logp(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    target: torch.Tensor,
    *,
    bias: torch.Tensor | None = None,
    temperature: float | torch.Tensor = 1.0,
    softcap: float = 0.0,
    ignore_index: int | None = -100,
    vocab_size: int = 0,
    want: Sequence[str] = ("logp", "lse"),
    top: int = 0,
) -> LinearLogp:
    """Log-probabilities of tokens from hidden states and the LM head, without the [N, V] logits.

    z = softcap(hidden @ weight.T + bias) / temperature; logp = z[target] - log(sum(exp(z))). A row's bits depend on
    that row, on weight and bias and on the options alone: scored alone, in a prefill or in a shuffled micro-batch it
    gives the same bytes. logp, lse and entropy are differentiable once, with respect to hidden, weight and bias.

    Args:
        hidden: [..., H], bfloat16 or float16, on the CPU or a CUDA device (gradients: bfloat16). Any distance between
            rows is taken as it is. Under autocast hidden and weight are cast to its dtype.
        weight: [V, H], dtype and device of hidden: the LM head, rows are ids.
        target: [...] or [..., K], int32 or int64: one or K token ids for each row.
        bias: [V], bfloat16, float16 or float32.
        temperature: one number > 0, or a float32 tensor [...]; it gets no gradient.
        softcap: c > 0 replaces every logit t by c * tanh(t / c); 0: none.
        ignore_index: target id whose row gives +0 and no gradient; None: no id is special.
        vocab_size: number of weight rows that exist, for a padded weight; 0: all.
        want: names out of logp, lse, entropy, rank, target_logit. The last two, and top, are for scoring: they are
            refused where a gradient could be asked for.
        top: T > 0 also returns the T ids of highest logit and their log-probabilities.

    Returns:
        LinearLogp of new tensors: logp, target_logit float32 and rank int32 in target's shape, lse and entropy float32
        [...], top_id int32 and top_logp float32 [..., T]; None where one was not asked for. A row with a target outside
        the vocabulary holds NaN (linear_logp_validate finds it).

    Raises:
        isobit.InvalidArgumentError (a ValueError): shapes, dtypes or devices that do not fit. isobit.Error: no kernel
        takes the call on this device. TypeError: a DTensor. NotImplementedError: a dual tensor of forward mode.
        ValueError: an unknown name in want.
    """
    wants = _PLAIN_WANTS.get(want) if type(want) is tuple and bias is None and not top else None
    if wants is not None and type(temperature) is float:
        found = _plain_call(hidden, weight, target, temperature, softcap, ignore_index, vocab_size, wants)
        if found is not None:
            return found
    for name in want:
        if name not in _WANTED:
            raise ValueError(f"want: expected names out of {', '.join(_WANTED)}, got {name!r}")
    per_row = temperature if isinstance(temperature, torch.Tensor) else None
    is_direct = direct(hidden, weight, target, bias, per_row)
    if not is_direct:
        refuse_distributed("linear_logp", hidden=hidden, weight=weight, bias=bias)
        refuse_tangents("linear_logp", hidden=hidden, weight=weight, bias=bias, temperature=per_row)
    hidden, weight = _cast(hidden, weight)
    lead = None
    if hidden.dim() != 2 or target.dim() not in (1, 2):
        lead = hidden.shape[:-1]
        hidden, target, per_row = _two_dimensional(hidden, target, per_row)
    options = (1.0 if per_row is not None else temperature, softcap, ignore_index, vocab_size)
    inputs = (hidden, weight, target, bias, per_row)
    gradient, entropy = _wants_gradient(hidden, weight, bias), "entropy" in want
    scoring = top or "rank" in want or "target_logit" in want
    if gradient and scoring:
        raise ValueError("want: rank, target_logit and top are for scoring; call under torch.no_grad()")
    kept = [*want, "top_id", "top_logp"] if top else want
    if is_direct and not gradient:
        found = _ops.run_forward(inputs, options, kept, top)
    else:
        if scoring:
            call, more = torch.ops.isobit.linear_logp_score, ("rank" in want, "target_logit" in want, top)
        else:
            call, more = torch.ops.isobit.linear_logp_save if gradient else torch.ops.isobit.linear_logp, ()
        made = dict(zip(LinearLogp._fields, call(*inputs, *options, entropy, *more)))
        found = [made[name] if name in kept else None for name in LinearLogp._fields]
    if lead is not None:
        found = [None if tensor is None else tensor.reshape([*lead, *tensor.shape[1:]]) for tensor in found]
    return LinearLogp(*found)


def linear_logp_validate(
    hidden: torch.Tensor,
    weight: torch.Tensor,
    target: torch.Tensor,
    *,
    temperature: float | torch.Tensor = 1.0,
    ignore_index: int | None = -100,
    vocab_size: int = 0,
) -> int:
    """First row that linear_logp would answer with NaN because of its targets or its temperature; -1 if there is none.

    Arguments as in linear_logp, hidden [N, H]. Synchronises the current stream, which linear_logp never does.
    """
    per_row = temperature if isinstance(temperature, torch.Tensor) else None
    value = 1.0 if per_row is not None else temperature
    args = LinearLogpArgs.from_buffer_copy(_ops._FORWARD)
    _ops._fill(args, args, 0, (hidden, weight, target, None, per_row), (value, 0.0, ignore_index, vocab_size))
    logp = torch.empty(target.shape, dtype=torch.float32, device=hidden.device)
    _ops.put(args, _ops._AT["logp"], "logp", logp)
    row = ctypes.c_int64()
    _ops.run(library.isobit_linear_logp_validate, args, hidden.device, ctypes.byref(row))
    return row.value
