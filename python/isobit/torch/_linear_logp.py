"""torch.ops.isobit.linear_logp*: schemas, CPU and CUDA implementations, fake tensors, gradients."""

from __future__ import annotations

import ctypes

import torch

from .._abi import LinearLogpArgs, LinearLogpBackwardArgs
from .._library import check, library
from . import _call
from ._call import add_workspace, offset, put, run, shim, template

_IN = ("hidden", "weight", "bias", "target", "temperature")
_OUT = ("logp", "lse", "entropy", "rank", "target_logit", "top_id", "top_logp")
_AT = {name: offset(LinearLogpArgs, name) for name in (*_IN, *_OUT)}
_INSIDE = LinearLogpBackwardArgs.forward.offset
_GRADIENTS = ("d_logp", "d_lse", "d_entropy", "d_hidden", "d_weight", "d_bias")
_BACKWARD_AT = {name: offset(LinearLogpBackwardArgs, name) for name in _GRADIENTS}
_FORWARD, _BACKWARD = template(LinearLogpArgs), template(LinearLogpBackwardArgs)
by_shim = shim.linear_logp if shim else None

_INPUTS = "Tensor hidden, Tensor weight, Tensor target, Tensor? bias, Tensor? temperature"
_OPTIONS = "float temperature_value, float softcap, int? ignore_index, int vocab_size"

_lib = torch.library.Library("isobit", "FRAGMENT")
_lib.define(f"linear_logp({_INPUTS}, {_OPTIONS}, bool entropy) -> (Tensor, Tensor, Tensor)")
_lib.define(f"linear_logp_save({_INPUTS}, {_OPTIONS}, bool entropy) -> (Tensor, Tensor, Tensor, Tensor)")
_lib.define(
    f"linear_logp_backward(Tensor? d_logp, Tensor? d_lse, Tensor? d_entropy, {_INPUTS}, {_OPTIONS}, "
    "Tensor? saved, bool need_hidden, bool need_weight, bool need_bias) -> (Tensor, Tensor, Tensor)"
)
_lib.define(
    f"linear_logp_score({_INPUTS}, {_OPTIONS}, bool entropy, bool rank, bool target_logit, int top) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)"
)


def _head(tensor: torch.Tensor | None, inner: int = 1) -> torch.Tensor | None:
    """Adjacent elements in a row, which the library asks for; other strides are copied."""
    if tensor is None or tensor.dim() <= inner or tensor.stride(-1) == 1:
        return tensor
    return tensor.contiguous()


def _fill(args: LinearLogpArgs, holder: ctypes.Structure, base: int, inputs, options) -> None:
    """Inputs and options, at byte `base` of the struct that holds args."""
    hidden, weight, target, bias, temperature = inputs
    temperature_value, softcap, ignore_index, vocab_size = options
    put(holder, base + _AT["hidden"], "hidden", hidden)
    put(holder, base + _AT["weight"], "weight", weight)
    put(holder, base + _AT["target"], "target", target)
    if bias is not None:
        put(holder, base + _AT["bias"], "bias", bias)
    if temperature is not None:
        put(holder, base + _AT["temperature"], "temperature", temperature)
    args.temperature_value, args.softcap, args.vocab_size = temperature_value, softcap, vocab_size
    if ignore_index is not None:
        args.use_ignore_index, args.ignore_index = 1, ignore_index


def _output(name: str, target: torch.Tensor | None, hidden: torch.Tensor, top: int) -> torch.Tensor:
    """A new tensor for an output; without a target for one that was not asked for, which has no element."""
    dtype = torch.int32 if name in ("rank", "top_id") else torch.float32
    if target is None:
        shape = (0,)
    elif name.startswith("top"):
        shape = (hidden.shape[0], top)
    elif name in ("lse", "entropy") and target.dim() != 1:
        shape = hidden.shape[:1]
    elif target.is_contiguous():
        return torch.empty_like(target, dtype=dtype)  # in a third of the time
    else:
        shape = target.shape
    return torch.empty(shape, dtype=dtype, device=hidden.device)


def _outputs(target, hidden, entropy: bool, rank: bool = False, target_logit: bool = False, top: int = 0):
    """New tensors in the order of _OUT."""
    wanted = (True, True, entropy, rank, target_logit, top, top)
    return tuple(_output(name, target if is_wanted else None, hidden, top) for name, is_wanted in zip(_OUT, wanted))


def run_forward(inputs, options, wanted, top: int = 0) -> list[torch.Tensor | None]:
    """The outputs called wanted in the order of _OUT, None for the others; top is the length of the top list."""
    hidden, weight, target, bias, temperature = inputs
    hidden, weight = _head(hidden), _head(weight)
    outputs = [_output(name, target, hidden, top) if name in wanted else None for name in _OUT]
    if by_shim is not None and _call.most_workspace is None:
        value, softcap, ignored, vocab_size = options
        ids = (True, ignored, vocab_size) if ignored is not None else (False, 0, vocab_size)
        by_shim(hidden, weight, target, bias, temperature, value, softcap, *ids, *outputs, None)
        return outputs
    args = LinearLogpArgs.from_buffer_copy(_FORWARD)
    _fill(args, args, 0, (hidden, weight, target, bias, temperature), options)
    for name, tensor in zip(_OUT, outputs):
        if tensor is not None:
            put(args, _AT[name], name, tensor)
    keep = add_workspace(library.isobit_linear_logp_workspace, args, hidden.device)
    run(library.isobit_linear_logp, args, hidden.device)
    del keep
    return outputs


def _score(hidden, weight, target, bias, temperature, temperature_value: float, softcap: float, ignore_index,
           vocab_size: int, entropy: bool, rank: bool, target_logit: bool, top: int):  # fmt: skip
    wanted = [name for name, is_wanted in zip(_OUT, (True, True, entropy, rank, target_logit, top, top)) if is_wanted]
    options = (temperature_value, softcap, ignore_index, vocab_size)
    found = run_forward((hidden, weight, target, bias, temperature), options, wanted, top)
    return tuple(_output(name, None, hidden, 0) if tensor is None else tensor for name, tensor in zip(_OUT, found))


def _forward(hidden, weight, target, bias, temperature, temperature_value: float, softcap: float, ignore_index,
             vocab_size: int, entropy: bool):  # fmt: skip
    wanted = _OUT[:3] if entropy else _OUT[:2]
    options = (temperature_value, softcap, ignore_index, vocab_size)
    found = run_forward((hidden, weight, target, bias, temperature), options, wanted)
    return found[0], found[1], found[2] if entropy else _output("entropy", None, hidden, 0)


def _backward_args(inputs, options) -> LinearLogpBackwardArgs:
    """The struct that the two passes of training share. Both take 1 - p as it is in float32, as every kernel can."""
    args = LinearLogpBackwardArgs.from_buffer_copy(_BACKWARD)
    args.subtract_p = 1
    _fill(args.forward, args, _INSIDE, inputs, options)
    return args


def _save(hidden, weight, target, bias, temperature, temperature_value: float, softcap: float, ignore_index,
          vocab_size: int, entropy: bool):  # fmt: skip
    hidden, weight = _head(hidden), _head(weight)
    outputs = _outputs(target, hidden, entropy)[:3]
    options = (temperature_value, softcap, ignore_index, vocab_size)
    args = _backward_args((hidden, weight, target, bias, temperature), options)
    for name, tensor, is_wanted in zip(_OUT, outputs, (True, True, entropy)):
        if is_wanted:
            put(args, _INSIDE + _AT[name], name, tensor)
    size = ctypes.c_size_t()
    check(library.isobit_linear_logp_saved_bytes(ctypes.byref(args), ctypes.byref(size)))
    saved = torch.zeros(size.value, dtype=torch.uint8, device=hidden.device)  # its padding is not written
    args.saved = saved.data_ptr()
    if hidden.shape[0]:
        keep = _add_backward_workspace(args, hidden.device)
        run(library.isobit_linear_logp_save, args, hidden.device)
        del keep
    return *outputs, saved


def _backward(d_logp, d_lse, d_entropy, hidden, weight, target, bias, temperature, temperature_value: float,
              softcap: float, ignore_index, vocab_size: int, saved, need_hidden: bool, need_weight: bool,
              need_bias: bool):  # fmt: skip
    hidden, weight = _head(hidden), _head(weight)
    gradients = _new_gradients(hidden, weight, bias, need_hidden, need_weight, need_bias)
    options = (temperature_value, softcap, ignore_index, vocab_size)
    args = _backward_args((hidden, weight, target, bias, temperature), options)
    present = (d_logp, d_lse, d_entropy, *(g if g.numel() else None for g in gradients))
    for name, tensor in zip(_GRADIENTS, present):
        if tensor is not None:
            put(args, _BACKWARD_AT[name], name, tensor)
    if not any(gradient.numel() for gradient in gradients):
        return gradients
    args.saved = _saved_address(args, saved, hidden.device) if saved is not None else None
    keep = _add_backward_workspace(args, hidden.device)
    run(library.isobit_linear_logp_backward, args, hidden.device)
    del keep
    return gradients


def _saved_address(args: LinearLogpBackwardArgs, saved: torch.Tensor, device: torch.device) -> int:
    size = ctypes.c_size_t()
    check(library.isobit_linear_logp_saved_bytes(ctypes.byref(args), ctypes.byref(size)))
    if saved.dtype != torch.uint8 or saved.device != device or not saved.is_contiguous() or saved.numel() < size.value:
        raise ValueError(
            f"saved: expected {size.value} contiguous uint8 on {device}, got {saved.numel()} {saved.dtype} on "
            f"{saved.device}"
        )
    return saved.data_ptr()


def _add_backward_workspace(args: LinearLogpBackwardArgs, device: torch.device) -> torch.Tensor:
    query = library.isobit_linear_logp_backward_workspace

    def of_the_whole(_, minimum, recommended):
        return query(ctypes.byref(args), minimum, recommended)

    return add_workspace(of_the_whole, args.forward, device)


def _new_gradients(hidden, weight, bias, need_hidden, need_weight, need_bias):
    def new(like, needed):
        return like.new_empty(like.shape) if needed else hidden.new_empty(0)

    return new(hidden, need_hidden), new(weight, need_weight), new(bias, need_bias and bias is not None)


for _name, _function in (("linear_logp", _forward), ("linear_logp_save", _save), ("linear_logp_backward", _backward),
                         ("linear_logp_score", _score)):  # fmt: skip
    for _key in ("CPU", "CUDA"):
        _lib.impl(_name, _function, _key)


def _check_shapes(hidden, weight, target):
    torch._check(hidden.dim() == 2, lambda: f"hidden: expected [N, H], got {list(hidden.shape)}")
    torch._check(weight.dim() == 2, lambda: f"weight: expected [V, H], got {list(weight.shape)}")
    torch._check(target.dim() in (1, 2), lambda: f"target: expected [N] or [N, K], got {list(target.shape)}")
    torch._check(hidden.shape[0] == target.shape[0], lambda: f"target: expected {hidden.shape[0]} rows")
    torch._check(hidden.shape[1] == weight.shape[1], lambda: f"weight: expected [V, {hidden.shape[1]}]")


@torch.library.register_fake("isobit::linear_logp", lib=_lib)
def _(hidden, weight, target, bias, temperature, temperature_value, softcap, ignore_index, vocab_size, entropy):
    _check_shapes(hidden, weight, target)
    return _outputs(target, hidden, entropy)[:3]


@torch.library.register_fake("isobit::linear_logp_save", lib=_lib)
def _(hidden, weight, target, bias, temperature, temperature_value, softcap, ignore_index, vocab_size, entropy):
    _check_shapes(hidden, weight, target)
    record = hidden.new_empty(24 * ((hidden.shape[0] + 3) // 4 * 4), dtype=torch.uint8)  # six words a row
    return *_outputs(target, hidden, entropy)[:3], record


@torch.library.register_fake("isobit::linear_logp_score", lib=_lib)
def _(hidden, weight, target, bias, temperature, temperature_value, softcap, ignore_index, vocab_size, entropy, rank,
      target_logit, top):  # fmt: skip
    _check_shapes(hidden, weight, target)
    return _outputs(target, hidden, entropy, rank, target_logit, top)


@torch.library.register_fake("isobit::linear_logp_backward", lib=_lib)
def _(d_logp, d_lse, d_entropy, hidden, weight, target, bias, temperature, temperature_value, softcap, ignore_index,
      vocab_size, saved, need_hidden, need_weight, need_bias):  # fmt: skip
    return _new_gradients(hidden, weight, bias, need_hidden, need_weight, need_bias)


def _keep(ctx, inputs, output):
    hidden, weight, target, bias, temperature, *options, entropy = inputs
    ctx.set_materialize_grads(False)  # an output that nobody used then has no gradient, and costs nothing
    ctx.save_for_backward(hidden, weight, target, bias, temperature, *output[3:])
    ctx.options, ctx.entropy = options, entropy


def _gradients(ctx, d_logp, d_lse, d_entropy, d_saved=None):
    needs = ctx.needs_input_grad
    missing = [None] * 8
    if d_logp is None and d_lse is None and (d_entropy is None or not ctx.entropy):
        return None, None, *missing
    kept = ctx.saved_tensors  # once: checkpointing counts
    inputs, saved = kept[:5], kept[5:]
    upstream = (d_logp, d_lse, d_entropy if ctx.entropy else None)
    d_hidden, d_weight, d_bias = torch.ops.isobit.linear_logp_backward(
        *upstream, *inputs, *ctx.options, *(saved or (None,)), needs[0], needs[1], needs[3]
    )
    missing[1] = d_bias if needs[3] else None
    return d_hidden if needs[0] else None, d_weight if needs[1] else None, *missing


def _no_second(ctx, *gradients):
    raise NotImplementedError("isobit.linear_logp has no second derivatives")


# linear_logp keeps its inputs alone, and its backward pass makes the record of the forward pass again.
torch.library.register_autograd("isobit::linear_logp", _gradients, setup_context=_keep, lib=_lib)
torch.library.register_autograd("isobit::linear_logp_save", _gradients, setup_context=_keep, lib=_lib)
torch.library.register_autograd("isobit::linear_logp_backward", _no_second, lib=_lib)
