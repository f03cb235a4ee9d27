"""Every block format against a scalar reading of its definition, bit by bit, on random blocks."""

import numpy as np
import pytest

import quant


def half(block, at):
    return float(np.frombuffer(bytes(block[at : at + 2]), np.float16)[0])


def nibble(packed, i, count):
    """Value i of `count` 4-bit values: the first half in the low nibbles, the second in the high ones."""
    return packed[i % (count // 2)] >> 4 * (i // (count // 2)) & 15


def q8_0(b, i):
    return half(b, 0) * int(np.int8(np.uint8(b[2 + i])))


def q4_0(b, i):
    return half(b, 0) * (nibble(b[2:], i, 32) - 8)


def q4_1(b, i):
    return half(b, 0) * nibble(b[4:], i, 32) + half(b, 2)


def q5_0(b, i):
    fifth = int.from_bytes(bytes(b[2:6]), "little") >> i & 1
    return half(b, 0) * (nibble(b[6:], i, 32) + 16 * fifth - 16)


def q4_k(b, i):
    group, scales = i // 32, b[4:16]
    if group < 4:
        scale, minimum = scales[group] & 63, scales[group + 4] & 63
    else:
        scale = scales[group + 4] & 15 | scales[group - 4] >> 6 << 4
        minimum = scales[group + 4] >> 4 | scales[group] >> 6 << 4
    q = b[16 + group // 2 * 32 + i % 32] >> 4 * (group % 2) & 15
    return half(b, 0) * scale * q - half(b, 2) * minimum


def q6_k(b, i):
    part, within = divmod(i, 128)
    low = b[64 * part + within % 64] >> 4 * (within // 64) & 15
    high = b[128 + 32 * part + within % 32] >> 2 * (within // 32) & 3
    scale = int(np.int8(np.uint8(b[192 + i // 16])))
    return half(b, 208) * scale * ((low | high << 4) - 32)


SCALAR = {"Q8_0": q8_0, "Q4_0": q4_0, "Q4_1": q4_1, "Q5_0": q5_0, "Q4_K": q4_k, "Q6_K": q6_k}


@pytest.mark.parametrize("kind", quant.BLOCK_TYPES)
def test_blocks_follow_their_definition(kind):
    name, values, size, dequantise = quant.BLOCK_TYPES[kind]
    blocks = np.random.default_rng(kind).integers(0, 256, (50, size), dtype=np.uint8)
    # Scales that are ordinary numbers: the fp16 fields of these formats stand at these bytes.
    for at in {"Q6_K": [208], "Q4_K": [0, 2], "Q4_1": [0, 2]}.get(name, [0]):
        blocks[:, at : at + 2] = np.linspace(0.01, 3, 50).astype(np.float16)[:, None].view(np.uint8)
    got = dequantise(blocks)
    assert got.dtype == np.float32 and got.shape == (50, values)
    for block, row in zip(blocks, got):
        expected = [SCALAR[name](block.tolist(), i) for i in range(values)]
        np.testing.assert_allclose(row, expected, rtol=3e-7, atol=1e-6)
