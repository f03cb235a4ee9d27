"""isobit.verl in verl's own forward pass of a dense model. By hand: see README.md in this folder."""

import torch
import transformers
from verl.models.transformers import dense_common

import isobit.verl


def test_the_fused_forward_of_verl_calls_isobit():
    isobit.verl.patch()
    torch.manual_seed(0)
    config = transformers.Qwen2Config(vocab_size=500, hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                                      num_attention_heads=4, num_key_value_heads=2)  # fmt: skip
    model = transformers.Qwen2ForCausalLM(config).to(torch.bfloat16)
    ids = torch.randint(500, (2, 9))

    def run(forward):
        model.zero_grad()
        out = forward(model, input_ids=ids, temperature=0.7, return_dict=True)
        (out.log_probs.sum() + out.entropy.sum()).backward()
        gradients = {name: parameter.grad.float().clone() for name, parameter in model.named_parameters()}
        return out.log_probs.flatten().detach().float(), out.entropy.flatten().detach().float(), gradients

    logp, entropy, gradients = run(dense_common.forward_with_triton_backend)  # what isobit.verl takes the place of
    logp_of_torch, entropy_of_torch, gradients_of_torch = run(dense_common.forward_with_torch_backend)
    torch.testing.assert_close(logp, logp_of_torch, rtol=0, atol=3e-3)  # verl's rounds its logits to bfloat16
    torch.testing.assert_close(entropy, entropy_of_torch, rtol=0, atol=1e-2)
    for name, gradient in gradients_of_torch.items():
        if name.endswith("k_proj.bias"):
            continue  # 0 but for rounding: attention does not change when every key moves alike
        assert (gradients[name] - gradient).norm() <= 0.01 * gradient.norm(), name
