"""Forward passes in NumPy, fp32: token ids in, final hidden states out. Written to be read, not to be fast. The gated
activation of Gemma's MLP is isobit's geglu.

Gemma 3 differs from the Llama family (SmolLM2) in these places, all visible below: embeddings scaled by sqrt(H),
RMSNorm after each sub-block as well as before it, RMSNorm of queries and keys per head, a local RoPE base in five of
six layers, whose attention also sees only a window of the past, and GELU instead of SiLU in the gate.
"""

import numpy as np

import isobit


def rms_norm(x, weight, epsilon):
    # Gemma defines the factor as 1 + w; GGUF files store that sum, so both families multiply by what the file holds.
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon) * weight


def geglu(gate, up):
    return isobit.geglu(gate.astype(np.float32), up.astype(np.float32), gelu="tanh")


def swiglu(gate, up):
    return gate / (1 + np.exp(-gate)) * up


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def rotate(x, base, interleaved):
    """RoPE on [tokens, heads, size]: pair i turns by position * base^(-2i/size).

    Gemma pairs i with i + size/2. GGUF files of the Llama family hold Q and K with their rows reordered, so that the
    pairs are neighbours (2i, 2i+1).
    """
    tokens, _, size = x.shape
    frequency = base ** (-np.arange(0, size, 2) / size)
    angle = (np.arange(tokens)[:, None] * frequency).astype(np.float32)[:, None, :]
    cos, sin = np.cos(angle), np.sin(angle)
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)
    a, b = x[..., : size // 2], x[..., size // 2 :]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def attend(q, k, v, window):
    """Causal grouped-query attention; q [tokens, heads, size], k and v [tokens, kv_heads, size]."""
    tokens, heads, size = q.shape
    k, v = (np.repeat(t, heads // t.shape[1], axis=1) for t in (k, v))
    scores = np.einsum("qhd,khd->hqk", q, k) / np.sqrt(np.float32(size))
    distance = np.arange(tokens)[:, None] - np.arange(tokens)[None, :]
    visible = (distance >= 0) & (distance < window)
    weights = softmax(np.where(visible, scores, -np.inf))
    return np.einsum("hqk,khd->qhd", weights, v).reshape(tokens, -1)


class Model:
    """`hidden(ids)` is [tokens, H] fp32 after the last norm; `head` is the [V, H] fp32 matrix that gives logits."""

    GLOBAL_EVERY = 6  # Gemma 3: layers 5, 11, 17 attend globally
    LOCAL_BASE = 10_000.0  # fixed by the architecture, not written in the file

    def __init__(self, gguf):
        self._gguf = gguf
        self._gemma = gguf.meta["general.architecture"] == "gemma3"
        self.embedding = gguf.tensor("token_embd.weight")
        # Both models tie their embeddings: the head is the embedding matrix unless the file holds one of its own.
        self.head = gguf.tensor("output.weight") if "output.weight" in gguf else self.embedding
        self._epsilon = gguf.get("attention.layer_norm_rms_epsilon")
        self._heads = gguf.get("attention.head_count")
        self._kv_heads = gguf.get("attention.head_count_kv")

    def hidden(self, ids):
        x = self.embedding[ids]
        if self._gemma:
            x = x * np.sqrt(np.float32(x.shape[1]))
        for layer in range(self._gguf.get("block_count")):
            x = self._layer(x, layer)
        return rms_norm(x, self._gguf.tensor("output_norm.weight"), self._epsilon)

    def _layer(self, x, layer):
        def weight(name):
            return self._gguf.tensor(f"blk.{layer}.{name}.weight")

        def norm(t, name):
            return rms_norm(t, weight(name), self._epsilon)

        y = self._attention(norm(x, "attn_norm"), layer, weight)
        x = x + (norm(y, "post_attention_norm") if self._gemma else y)
        y = self._mlp(norm(x, "ffn_norm"), layer, weight)
        return x + (norm(y, "post_ffw_norm") if self._gemma else y)

    def _mlp(self, x, layer, weight):
        gate, up = x @ weight("ffn_gate").T, x @ weight("ffn_up").T
        return (geglu if self._gemma else swiglu)(gate, up) @ weight("ffn_down").T

    def _attention(self, x, layer, weight):
        tokens = x.shape[0]
        q = (x @ weight("attn_q").T).reshape(tokens, self._heads, -1)
        k = (x @ weight("attn_k").T).reshape(tokens, self._kv_heads, -1)
        v = (x @ weight("attn_v").T).reshape(tokens, self._kv_heads, -1)
        base, window = self._gguf.get("rope.freq_base"), tokens
        if self._gemma:
            q = rms_norm(q, weight("attn_q_norm"), self._epsilon)
            k = rms_norm(k, weight("attn_k_norm"), self._epsilon)
            if (layer + 1) % self.GLOBAL_EVERY != 0:
                base, window = self.LOCAL_BASE, self._gguf.get("attention.sliding_window")
        q, k = (rotate(t, base, interleaved=not self._gemma) for t in (q, k))
        return attend(q, k, v, window) @ weight("attn_output").T
