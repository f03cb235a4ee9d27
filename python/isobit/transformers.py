"""Hugging Face Transformers: GeGLU of Gemma 1, 2, 3 and T5 in one kernel, and a scorer without logits."""

from __future__ import annotations

import types

import torch

from ._linear_logp import LinearLogp
from .torch import geglu, linear_logp

__all__ = ["patch", "score", "unpatch"]

# Class of an activation module, and the form of GELU that it computes.
_FORMS = {"GELUTanh": "tanh", "PytorchGELUTanh": "tanh", "NewGELUActivation": "tanh", "GELUActivation": "erf"}


def _form(module: torch.nn.Module, activation: torch.nn.Module) -> str:
    name = type(activation).__name__
    if name not in _FORMS:
        raise ValueError(
            f"{type(module).__name__}: expected an activation out of {', '.join(_FORMS)}, got {name}; this model's MLP "
            "is not a GeGLU"
        )
    return _FORMS[name]


def _gemma_forward(self, x: torch.Tensor) -> torch.Tensor:
    return self.down_proj(geglu(self.gate_proj(x), self.up_proj(x), gelu=self._isobit_gelu))


def _t5_forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
    hidden = geglu(self.wi_0(hidden_states), self.wi_1(hidden_states), gelu=self._isobit_gelu)
    hidden, dtype = self.dropout(hidden), self.wo.weight.dtype
    return self.wo(hidden.to(dtype) if dtype.is_floating_point else hidden)  # a quantised layer takes what comes


_GEMMA = ("GemmaMLP", "Gemma2MLP", "Gemma3MLP")
_T5 = ("T5DenseGatedActDense", "MT5DenseGatedActDense", "UMT5DenseGatedActDense")


def patch(model: torch.nn.Module) -> int:
    """Gives the MLPs of a Gemma 1, 2 or 3 or a gated T5 model a forward pass with isobit's geglu.

    Weights, names and the state dict stay as they are; unpatch() takes it back. Activations are rounded once, after the
    product, where eager PyTorch rounds gelu(gate) as well.

    Returns:
        The number of MLPs.

    Raises:
        ValueError: the model has no such MLP, or one whose activation is not GELU.
    """
    count = 0
    for module in model.modules():
        name = type(module).__name__
        if name in _GEMMA:
            module._isobit_gelu = _form(module, module.act_fn)
            module.forward = types.MethodType(_gemma_forward, module)
        elif name in _T5:
            module._isobit_gelu = _form(module, module.act)
            module.forward = types.MethodType(_t5_forward, module)
        else:
            continue
        count += 1
    if count == 0:
        raise ValueError(f"{type(model).__name__}: expected a model with {' or '.join(_GEMMA + _T5)}, found none")
    return count


def unpatch(model: torch.nn.Module) -> None:
    """Gives every MLP that patch() changed its own forward pass again."""
    for module in model.modules():
        if "_isobit_gelu" in vars(module):
            del module._isobit_gelu, module.forward


def _head(model: torch.nn.Module) -> torch.nn.Linear:
    """The LM head, if it is no more than a linear layer whose output is the logits."""
    head = model.get_output_embeddings()
    if type(head) is not torch.nn.Linear:
        raise TypeError(
            f"{type(model).__name__}: the LM head: expected torch.nn.Linear, got {type(head).__name__}; merge adapters "
            "into it first"
        )
    return head


def _softcap(model: torch.nn.Module) -> float:
    config = model.config.get_text_config()
    for name in ("logit_scale", "logits_scaling", "output_multiplier", "output_multiplier_scale", "lm_head_multiplier"):
        if getattr(config, name, None) not in (None, 1, 1.0):
            raise NotImplementedError(f"{type(model).__name__}: config.{name}: a scale of the logits is not supported")
    return getattr(config, "final_logit_softcapping", None) or 0.0


def score(
    model: torch.nn.Module,
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    *,
    labels: torch.Tensor | None = None,
    temperature: float = 1.0,
    want: tuple[str, ...] = ("logp",),
    dtype: torch.dtype | None = None,
    **inputs,
) -> LinearLogp:
    """Log-probability of every token after the first: logits -> log_softmax -> gather, without the logits.

    The head's bits depend on the hidden states alone. Those come from the model's own layers, whose bits may change
    with the batch: equal scores need equal hidden states.

    Args:
        model: a causal language model with a plain linear head; softcapped logits (Gemma 2) are honoured.
        input_ids: int64 [B, S].
        attention_mask: [B, S]; tokens where it is 0 are scored as 0.
        labels: [B, S], the tokens to score instead of input_ids, -100 to leave one out.
        temperature: divides the logits.
        want: names out of logp, lse, entropy; rank and target_logit under torch.no_grad().
        dtype: bfloat16 or float16 to cast hidden states and head to; None: as they are (a float32 model then needs
            autocast).
        inputs: further arguments of the model.

    Returns:
        LinearLogp of float32 [B, S - 1]: position t is token t + 1 given tokens 0 to t.
    """
    head, softcap = _head(model), _softcap(model)
    hidden = model.base_model(input_ids=input_ids, attention_mask=attention_mask, **inputs).last_hidden_state[:, :-1]
    weight, bias = head.weight, head.bias
    if dtype is not None:
        hidden, weight = hidden.to(dtype), weight.to(dtype)
    target = (input_ids if labels is None else labels)[:, 1:]
    if attention_mask is not None:
        target = target.masked_fill(attention_mask[:, 1:] == 0, -100)
    return linear_logp(hidden, weight, target, bias=bias, softcap=softcap, temperature=temperature, want=want)
