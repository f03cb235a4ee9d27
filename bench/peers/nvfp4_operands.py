"""Operands of nvfp4.py: packed matrices and their values."""

from __future__ import annotations

import math

import torch

import isobit.torch as ops
from isobit.torch._nvfp4_mlp import tile_scales

E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


class Packed:
    """A random packed matrix [rows, k] with scales between 2^-2 and 2^1."""

    def __init__(self, rows: int, k: int, seed: int):
        random = torch.Generator(device="cuda").manual_seed(seed)
        self.codes = torch.randint(0, 256, (rows, k // 2), dtype=torch.uint8, device="cuda", generator=random)
        self.blocks = torch.randint(44, 68, (rows, k // 16), dtype=torch.uint8, device="cuda", generator=random)
        self.matrix = ops.Nvfp4Matrix(self.codes, tile_scales(self.blocks))

    def bytes(self) -> int:
        return self.codes.numel() + self.matrix.scales.numel()


def dequantise(codes: torch.Tensor, blocks: torch.Tensor, table: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
    """[rows, k] bf16. `table` holds for every byte its two values."""
    values = table[codes.int()].view(*blocks.shape, 16)
    return (values * (blocks.view(torch.float8_e4m3fn).to(torch.bfloat16) * scale)[..., None]).flatten(1)


def pair_table() -> torch.Tensor:
    nibble = torch.tensor(E2M1 + tuple(-v for v in E2M1), dtype=torch.bfloat16, device="cuda")
    byte = torch.arange(256, device="cuda")
    return torch.stack([nibble[byte % 16], nibble[byte // 16]], 1)


def packed_normal(rows: int, k: int, seed: int):
    """Normal values as NVFP4, encode scale a power of two: the matrix, its exact bf16 values, the decode scale."""
    random = torch.Generator(device="cuda").manual_seed(seed)
    values = torch.randn(rows, k, device="cuda", generator=random, dtype=torch.bfloat16)
    encode = 2.0 ** math.floor(math.log2(2688 / values.abs().max().item()))
    codes, blocks = ops.nvfp4_quantize(values, global_scale=encode, layout="linear")[:2]
    return ops.Nvfp4Matrix(codes, tile_scales(blocks)), dequantise(codes, blocks, pair_table(), 1 / encode), 1 / encode
