"""A made-up model for machines without a package registry: Gemma 3's architecture in small, weights out of a counter.

It knows nothing, so its perplexity says nothing about language; it runs the same code path. The weights come from
integer arithmetic alone, so every machine makes the same ones.
"""

import numpy as np

HIDDEN, LAYERS, HEADS, HEAD_SIZE, FEED_FORWARD, VOCABULARY = 128, 6, 4, 32, 256, 4096


def _uniform(name, shape, scale):
    """Numbers in (-scale, scale): the splitmix64 finaliser over a counter that starts at a hash of the name."""
    seed = sum(byte * 31**i for i, byte in enumerate(name.encode())) % 2**32
    x = np.arange(int(np.prod(shape)), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed << 20)
    x = (x ^ x >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    unit = (x >> np.uint64(40)).astype(np.float32) / np.float32(2**23) - 1
    return (unit * scale).reshape(shape)


def _vocabulary():
    """Special tokens, the 256 bytes, single letters and the space sign, pairs of letters, and unused entries."""
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    pairs = [a + b for a in letters for b in letters] + ["\u2581" + a for a in letters]
    pieces = ["<pad>", "<eos>", "<bos>", "<unk>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    types = [3] * 4 + [6] * 256
    mergeable = ["\u2581"] + letters + pairs
    unused = VOCABULARY - len(pieces) - len(mergeable)
    types += [1] * len(mergeable) + [3] * unused
    scores = [0.0] * 260 + [-float(i) for i in range(len(mergeable))] + [-1000.0] * unused
    return pieces + mergeable + [f"<unused{i}>" for i in range(unused)], types, scores


class SyntheticModel:
    """Offers what model.Model and tokenizer.SentencePiece read from a Gguf."""

    def __init__(self):
        pieces, types, scores = _vocabulary()
        self.meta = {
            "general.architecture": "gemma3",
            "gemma3.block_count": LAYERS,
            "gemma3.attention.head_count": HEADS,
            "gemma3.attention.head_count_kv": 1,
            "gemma3.attention.layer_norm_rms_epsilon": 1e-6,
            "gemma3.attention.sliding_window": 16,
            "gemma3.rope.freq_base": 1e6,
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": pieces,
            "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.scores": scores,
            "tokenizer.ggml.bos_token_id": 2,
            "tokenizer.ggml.add_bos_token": True,
        }
        self._shapes = {
            "token_embd": (VOCABULARY, HIDDEN),
            "attn_q": (HEADS * HEAD_SIZE, HIDDEN),
            "attn_k": (HEAD_SIZE, HIDDEN),
            "attn_v": (HEAD_SIZE, HIDDEN),
            "attn_output": (HIDDEN, HEADS * HEAD_SIZE),
            "ffn_gate": (FEED_FORWARD, HIDDEN),
            "ffn_up": (FEED_FORWARD, HIDDEN),
            "ffn_down": (HIDDEN, FEED_FORWARD),
        }

    def __contains__(self, name):
        return name.split(".")[-2] in self._shapes

    def get(self, key):
        return self.meta["gemma3." + key]

    def tensor(self, name):
        kind = name.split(".")[-2]
        if kind.endswith("norm"):
            size = HEAD_SIZE if kind in ("attn_q_norm", "attn_k_norm") else HIDDEN
            return 1 + _uniform(name, (size,), 0.5)
        return _uniform(name, self._shapes[kind], np.sqrt(3 / HIDDEN))
