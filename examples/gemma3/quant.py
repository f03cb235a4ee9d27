"""Dequantisation of GGUF blocks to fp32, vectorised over blocks.

A quantised tensor is a sequence of blocks; each block holds its scale(s) and a fixed number of small integers. Every
function takes an array of shape [blocks, bytes per block] (uint8) and returns [blocks, values per block] (float32).
Layouts are those of the GGML project's block formats.
"""

import numpy as np


def _half(blocks, start):
    """The fp16 number at byte `start` of every block, as a column that broadcasts over the block's values."""
    return blocks[:, start : start + 2].copy().view(np.float16).astype(np.float32)


def _nibbles(packed):
    """Low nibbles of all bytes, then their high nibbles: the order in which 4-bit blocks of 32 store values."""
    return np.concatenate([packed & 15, packed >> 4], axis=1)


def q8_0(blocks):
    return _half(blocks, 0) * blocks[:, 2:].view(np.int8)


def q4_0(blocks):
    return _half(blocks, 0) * (_nibbles(blocks[:, 2:]).astype(np.int8) - 8)


def q4_1(blocks):
    return _half(blocks, 0) * _nibbles(blocks[:, 4:]) + _half(blocks, 2)


def q5_0(blocks):
    """4 low bits as in q4_0; the fifth bit of value i is bit i of a 32-bit word."""
    fifth = np.unpackbits(blocks[:, 2:6], axis=1, bitorder="little")
    return _half(blocks, 0) * ((_nibbles(blocks[:, 6:]) | fifth << 4).astype(np.int8) - 16)


def q4_k(blocks):
    """256 values in 8 groups of 32; group g is d * scale[g] * q - dmin * minimum[g], scales and minima in 6 bits.

    The 12 bytes of 6-bit numbers: bytes 0-3 hold scales 0-3 and bytes 4-7 minima 0-3 in their low 6 bits; the spare top
    2 bits of those bytes complete the numbers of groups 4-7, whose low 4 bits stand in bytes 8-11.
    """
    d, dmin = _half(blocks, 0), _half(blocks, 2)
    packed = blocks[:, 4:16]
    first, second, third = packed[:, 0:4], packed[:, 4:8], packed[:, 8:12]
    scale = np.concatenate([first & 63, (third & 15) | (first >> 6) << 4], axis=1)
    minimum = np.concatenate([second & 63, (third >> 4) | (second >> 6) << 4], axis=1)
    # 32 bytes hold two groups: the low nibbles are the first, the high nibbles the second.
    quads = blocks[:, 16:].reshape(-1, 4, 32)
    q = np.stack([quads & 15, quads >> 4], axis=2).reshape(-1, 8, 32)
    return ((d * scale)[:, :, None] * q - (dmin * minimum)[:, :, None]).reshape(-1, 256)


def q6_k(blocks):
    """256 values in 16 groups of 16 with int8 scales; 4 low bits in 128 bytes, 2 high bits in 64 bytes.

    Per half of 128 values: 64 bytes of low bits (low nibbles are values 0-63, high nibbles 64-127) and 32 bytes of high
    bits, of which bits 2k, 2k+1 belong to values 32k to 32k+31.
    """
    low = blocks[:, :128].reshape(-1, 2, 64)
    low = np.concatenate([low & 15, low >> 4], axis=2)
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> np.array([0, 2, 4, 6], np.uint8)[:, None] & 3
    q = (low | high.reshape(-1, 2, 128) << 4).astype(np.int8) - 32
    scale = blocks[:, 192:208].view(np.int8)
    return ((_half(blocks, 208) * scale)[:, :, None] * q.reshape(-1, 16, 16)).reshape(-1, 256)


# GGUF type number: (name, values per block, bytes per block, function)
BLOCK_TYPES = {
    2: ("Q4_0", 32, 18, q4_0),
    3: ("Q4_1", 32, 20, q4_1),
    6: ("Q5_0", 32, 22, q5_0),
    8: ("Q8_0", 32, 34, q8_0),
    12: ("Q4_K", 256, 144, q4_k),
    14: ("Q6_K", 256, 210, q6_k),
}
PLAIN_TYPES = {0: ("F32", np.float32), 1: ("F16", np.float16)}
