"""isobit under other projects' names, against those projects where they can be run on a CPU."""

import inspect
import sys
import types

import pytest
import torch
import transformers
from conftest import same_bits
from trl.kernels.chunked_logprob import ChunkedLogProbFunction

import isobit
import isobit.liger
import isobit.pi05
import isobit.rl_kernel
import isobit.torch as it
import isobit.transformers
import isobit.trl
import isobit.verl
import isobit.vllm

SMALL = {"vocab_size": 320, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "head_dim": 16,
         "num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 0}  # fmt: skip


def gemma(kind="Gemma3", **options):
    config = {"Gemma": "GemmaConfig", "Gemma2": "Gemma2Config", "Gemma3": "Gemma3TextConfig"}[kind]
    model = getattr(transformers, f"{kind}ForCausalLM")(getattr(transformers, config)(**SMALL, **options))
    return model.to(torch.bfloat16).eval()


def tokens(rows=2, length=12):
    return torch.randint(1, 320, (rows, length))


@pytest.mark.parametrize("kind", ["Gemma", "Gemma2", "Gemma3"])
@torch.no_grad()
def test_a_patched_gemma_is_the_model_with_one_rounding_less(kind):
    model, ids = gemma(kind), tokens()
    names = list(model.state_dict())
    before = model(ids).logits.float()
    assert isobit.transformers.patch(model) == 2
    after = model(ids).logits.float()
    assert list(model.state_dict()) == names
    assert not torch.equal(before, after)
    torch.testing.assert_close(after, before, atol=0.05, rtol=0.02)
    mlp = model.model.layers[0].mlp
    x = torch.randn(3, 64).bfloat16()
    assert same_bits(mlp(x), mlp.down_proj(it.geglu(mlp.gate_proj(x), mlp.up_proj(x), gelu="tanh")))
    isobit.transformers.unpatch(model)
    assert torch.equal(model(ids).logits.float(), before)


@torch.no_grad()
def test_a_patched_t5_is_the_model():
    config = transformers.T5Config(vocab_size=320, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4,
                                   feed_forward_proj="gated-gelu", decoder_start_token_id=0)  # fmt: skip
    model = transformers.T5ForConditionalGeneration(config).eval()
    ids = tokens()
    before = model(input_ids=ids, decoder_input_ids=ids).logits
    assert isobit.transformers.patch(model) == 4
    torch.testing.assert_close(model(input_ids=ids, decoder_input_ids=ids).logits, before, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_a_quantised_layer_after_a_patched_t5_mlp_gets_the_activations_as_they_are():
    config = transformers.T5Config(vocab_size=320, d_model=64, d_kv=16, d_ff=96, num_layers=1, num_heads=4,
                                   feed_forward_proj="gated-gelu", decoder_start_token_id=0)  # fmt: skip
    model = transformers.T5EncoderModel(config).eval()
    isobit.transformers.patch(model)
    (mlp,) = (module for module in model.modules() if type(module).__name__ == "T5DenseGatedActDense")

    class Int8(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(64, 96, dtype=torch.int8), requires_grad=False)

        def forward(self, x):
            return x

    mlp.wo = Int8()
    x = torch.randn(3, 64)
    assert torch.equal(mlp(x), it.geglu(mlp.wi_0(x), mlp.wi_1(x), gelu="tanh"))


def test_patch_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="found none"):
        isobit.transformers.patch(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match="activation"):
        isobit.transformers.patch(gemma(hidden_activation="silu"))


@pytest.mark.parametrize("kind", ["Gemma2", "Gemma3"])
@torch.no_grad()
def test_the_scorer_replaces_logits_log_softmax_gather(kind):
    model, ids = gemma(kind), tokens()
    mask = torch.ones_like(ids)
    mask[1, 8:] = 0
    found = isobit.transformers.score(model, ids, mask, want=("logp", "entropy"))
    hidden = model.model(ids, attention_mask=mask).last_hidden_state[:, :-1].double()
    z = hidden @ model.lm_head.weight.double().T
    if kind == "Gemma2":
        z = 30 * torch.tanh(z / 30)
    wanted = z.log_softmax(-1).gather(-1, ids[:, 1:, None])[:, :, 0] * mask[:, 1:]
    torch.testing.assert_close(found.logp.double(), wanted, atol=2e-5, rtol=0)
    assert (found.logp[1, 7:] == 0).all()
    in_fp32 = isobit.transformers.score(model.float(), ids, mask, dtype=torch.bfloat16)
    assert in_fp32.logp.shape == found.logp.shape


def test_the_scorer_refuses_heads_that_it_would_get_wrong():
    model = gemma()
    model.lm_head = torch.nn.Sequential(model.lm_head)
    with pytest.raises(TypeError, match=r"expected torch\.nn\.Linear"):
        isobit.transformers.score(model, tokens())
    model = gemma()
    model.config.logit_scale = 0.5
    with pytest.raises(NotImplementedError, match="logit_scale"):
        isobit.transformers.score(model, tokens())


def head(rows=9):
    return torch.randn(rows, 64).bfloat16(), torch.randn(320, 64).bfloat16() / 8, torch.randint(320, (rows,))


@pytest.mark.parametrize("options", [{}, {"final_logit_softcapping": 5.0}, {"logit_scale": 0.5}])
def test_trl_chunked_logprob_has_trls_values(options):
    hidden, weight, targets = head()
    bias = torch.randn(320)
    outputs = ("entropy", "is_top1")
    theirs = ChunkedLogProbFunction.apply(hidden.float(), weight.float(), bias, targets, 0.7, 128,
                                          *(options.get(n, d) for n, d in (("final_logit_softcapping", None),
                                                                           ("logit_scale", 1.0))), outputs)  # fmt: skip
    ours = isobit.trl.ChunkedLogProbFunction.apply(hidden, weight, bias, targets, 0.7, 128, outputs=outputs, **options)
    torch.testing.assert_close(ours[0], theirs[0], atol=3e-5, rtol=0)
    torch.testing.assert_close(ours[1], theirs[1], atol=5e-5, rtol=0)
    assert torch.equal(ours[4], theirs[4])
    assert ours[2] is None
    wanted = list(inspect.signature(ChunkedLogProbFunction.forward).parameters)[1:]
    assert list(inspect.signature(isobit.trl.chunked_logprob).parameters) == wanted
    with pytest.raises(NotImplementedError, match="mean_logits"):
        isobit.trl.chunked_logprob(hidden, weight, bias, targets, 1.0, 128, outputs=("mean_logits",))


@pytest.mark.parametrize(("adapter", "module", "name"), [
    (isobit.trl, "trl.trainer.utils", "_ChunkedLogProbFunction"),
    (isobit.verl, "verl.utils.kernel.linear_cross_entropy", "LinearCrossEntropy"),
])  # fmt: skip
def test_patch_writes_the_name_that_the_project_looks_up(monkeypatch, adapter, module, name):
    # The modules themselves need much more than PyTorch; what is looked at is the place that patch() writes to.
    place = types.ModuleType(module)
    monkeypatch.setitem(sys.modules, module, place)
    adapter.patch()
    assert getattr(place, name) is getattr(adapter, name.lstrip("_"))


def test_verl_linear_cross_entropy():
    hidden, weight, labels = head(8)
    logp, entropy = isobit.verl.LinearCrossEntropy.apply(
        hidden.view(2, 4, 64), weight, labels.view(2, 4), 1.5, "none", None
    )
    wanted = ((hidden.double() @ weight.double().T) / 1.5).log_softmax(-1)
    torch.testing.assert_close(logp.double(), wanted.gather(1, labels[:, None])[:, 0], atol=2e-5, rtol=0)
    torch.testing.assert_close(entropy.double(), -(wanted.exp() * wanted).sum(-1), atol=5e-5, rtol=0)
    each = torch.full((2, 4), 1.5)
    assert same_bits(isobit.verl.linear_cross_entropy(hidden, weight, labels, each)[0], logp)
    assert same_bits(isobit.verl.linear_cross_entropy(hidden, weight, labels, torch.tensor(1.5))[0], logp)
    with pytest.raises(ValueError, match="reduction"):
        isobit.verl.linear_cross_entropy(hidden, weight, labels, 1.0, "mean")


def test_vllm_prompt_logprobs():
    hidden, weight, ids = head()
    found = isobit.vllm.prompt_logprobs(hidden, weight, ids, 3)
    wanted = (hidden.double() @ weight.double().T).log_softmax(-1)
    assert torch.equal(found.logprob_token_ids[:, 0], ids.int())
    assert torch.equal(found.logprob_token_ids[:, 1:], wanted.topk(3).indices.int())
    torch.testing.assert_close(
        found.logprobs.double(), wanted.gather(1, found.logprob_token_ids.long()), atol=2e-5, rtol=0
    )
    selected = wanted.gather(1, ids[:, None])
    assert torch.equal(found.selected_token_ranks, (wanted >= selected).sum(1).int())
    assert isobit.vllm.prompt_logprobs(hidden, weight, ids).logprobs.shape == (9, 1)


def test_liger_geglu():
    a, b, dc = (torch.randn(5, 33).bfloat16() for _ in range(3))
    x, y, p, q = (t.clone().requires_grad_() for t in (a, b, a, b))
    out = isobit.liger.LigerGELUMulFunction.apply(x, y)
    out.backward(dc)
    reference = it.geglu(p, q, gelu="tanh")
    reference.backward(dc)
    assert same_bits(out, reference)
    assert same_bits(x.grad, p.grad)
    first, second, third = isobit.liger.geglu_forward(a, b)
    assert first is a
    assert second is b
    assert same_bits(third, out)
    assert same_bits(isobit.liger.geglu_backward(a, b, dc)[1], q.grad)


def test_rl_kernel_linear_logp():
    hidden, weight, ids = head(8)
    bias = torch.randn(320)
    logp = isobit.rl_kernel.linear_logp(hidden.view(2, 4, 64), weight, ids.view(2, 4), bias)
    assert same_bits(logp.view(8), it.linear_logp(hidden, weight, ids, bias=bias).logp)
    assert same_bits(
        isobit.rl_kernel.FusedLinearLogpOp()(hidden, weight, ids), it.linear_logp(hidden, weight, ids).logp
    )
    with pytest.raises(ValueError, match="global_vocab_size"):
        isobit.rl_kernel.linear_logp(hidden, weight, ids, vocab_start_index=7)


class Policy(torch.nn.Module):
    """Submodules named as in a pi0.5 policy."""

    def __init__(self):
        super().__init__()
        self.language_model, self.gemma_expert = gemma("Gemma").model, gemma("Gemma").model

    def forward(self, ids):
        return self.language_model(ids).last_hidden_state + self.gemma_expert(ids).last_hidden_state


@torch.no_grad()
def test_pi05_mlps_of_the_expert_become_nvfp4():
    policy, ids = Policy(), tokens()
    before = policy(ids).float()
    assert isobit.pi05.quantize(policy, lambda: policy(ids)) == 2
    assert isinstance(policy.gemma_expert.layers[1].mlp, it.Nvfp4Mlp)
    assert not isinstance(policy.language_model.layers[1].mlp, it.Nvfp4Mlp)
    after = policy(ids).float()
    assert (after - before).norm() / before.norm() < 0.2
    assert isobit.pi05.quantize(policy, lambda: policy(ids), (isobit.pi05.LANGUAGE_MODEL,)) == 2
    with pytest.raises(ValueError, match="found none"):
        isobit.pi05.quantize(policy, lambda: policy(ids))
    with pytest.raises(ValueError, match="calibrate"):
        isobit.pi05.quantize(Policy(), lambda: None)
