"""isobit.pi05 on LeRobot's own pi0.5: a small policy of its classes. By hand: see README.md in this folder."""

import torch
from lerobot.policies.pi05 import modeling_pi05

import isobit.pi05


def small_policy():
    config = modeling_pi05.GemmaConfig(width=64, depth=2, mlp_dim=128, num_heads=8, num_kv_heads=1, head_dim=16)
    torch.manual_seed(0)
    policy = modeling_pi05.PaliGemmaWithExpertModel(config, config, use_adarms=[False, True], image_size=28)
    policy.eval()  # returns None there
    return policy


def run(policy, embeddings):
    prefix, suffix = embeddings
    length = sum(part.shape[1] for part in embeddings if part is not None)
    rows = next(part for part in embeddings if part is not None).shape[0]
    positions = torch.arange(length).expand(rows, -1)
    mask = torch.zeros(rows, 1, length, length)
    if prefix is not None:
        mask[:, :, : prefix.shape[1], prefix.shape[1] :] = torch.finfo(torch.float32).min  # as the policy masks
    condition = torch.randn(1, 64, generator=torch.Generator().manual_seed(2)).expand(rows, -1)
    outputs, _ = policy(attention_mask=mask, position_ids=positions, inputs_embeds=[prefix, suffix],
                        adarms_cond=[None, condition], use_cache=False)  # fmt: skip
    return outputs


def test_the_action_expert_runs_on_nvfp4():
    policy = small_policy()
    generator = torch.Generator().manual_seed(1)
    prefix, suffix = (torch.randn(2, n, 64, generator=generator).bfloat16() for n in (7, 5))
    with torch.no_grad():
        before = run(policy, (prefix, suffix))
        assert isobit.pi05.quantize(policy, lambda: run(policy, (prefix, suffix))) == 2
        after = run(policy, (prefix, suffix))  # both towers, layer by layer
        alone = run(policy, (None, suffix))  # a step of denoising
    assert torch.equal(before[0].float(), after[0].float())  # the language model is as it was
    change = (after[1].float() - before[1].float()).norm() / before[1].float().norm()
    print(f"relative change of the action expert's output: {change:.4f}")
    assert 0 < change < 0.2
    assert torch.isfinite(alone[1].float()).all()
