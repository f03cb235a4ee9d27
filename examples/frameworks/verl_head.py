"""verl's LinearCrossEntropy call by isobit: the actor's log-probabilities and entropies, with gradients.

In a training script one line does it, before the model is built: ``isobit.verl.patch()``.
"""

import torch

import isobit.verl

torch.manual_seed(0)
hidden = torch.randn(2, 20, 64, dtype=torch.bfloat16, requires_grad=True)
weight = (torch.randn(1000, 64, dtype=torch.bfloat16) / 8).requires_grad_()
labels = torch.randint(1000, (2, 20))

log_probs, entropy = isobit.verl.linear_cross_entropy(hidden, weight, labels, 0.8, "none", None)
print(f"{len(log_probs)} tokens, mean log-probability {log_probs.mean():.4f}, mean entropy {entropy.mean():.4f}")

old = log_probs.detach()  # what the rollout reported: equal bits, so every ratio is exactly 1
ratio = torch.exp(log_probs - old)
print("ratios that are not exactly 1:", int((ratio != 1).sum()))
loss = -(ratio * torch.randn(40)).mean() - 0.01 * entropy.mean()
loss.backward()
print(f"gradient norms: hidden {hidden.grad.float().norm():.4f}, weight {weight.grad.float().norm():.4f}")
