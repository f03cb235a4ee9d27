"""Files of `isobit pack` (docs/pack.md): their tag, their layers, and MLPs made of them."""

from __future__ import annotations

import ctypes
import json
import math
import mmap
import os
import struct

import torch

from .._library import library
from ._nvfp4 import Matrix
from ._nvfp4_mlp import Nvfp4Mlp

_DTYPES = {"U8": (torch.uint8, 1), "F32": (torch.float32, 4)}
_MOST_HEADER_BYTES = 100_000_000  # as the format has it


def _contract(op: str) -> str:
    function = getattr(library, f"isobit_{op}_contract")
    function.restype = ctypes.c_char_p
    return function().decode()


def _known_tags() -> dict[str, tuple[str, ...]]:
    """Every key of a tag with the words that this version reads."""
    return {
        "isobit.format": ("nvfp4-mlp/0",),
        "isobit.layout": ("linear", "128x4", "8x4"),
        "isobit.interleave": ("gate 0, up 0, gate 1, up 1",),
        "isobit.global_scales": ("decode",),
        "isobit.gelu": ("tanh", "erf"),
        "isobit.prescale": ("none", "x times input_scale"),
        "isobit.quantizer": (_contract("nvfp4_quantize"),),
        "isobit.geglu": (_contract("nvfp4_geglu"),),
        "isobit.linear": (_contract("nvfp4_linear"),),
    }


class PackedMlps:
    """The gated MLPs of a file that `isobit pack` wrote.

    The file is mapped; a tensor is copied when its MLP is made. ``gelu`` is the form of GELU, ``layout`` that of the
    block scales, ``names`` the layers in the file's order.

    Raises:
        ValueError: not such a file, or one whose tag has a word that this version does not know: weights in another
        order would give wrong results without an error. OSError: the file cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self._path = os.fspath(path)
        with open(self._path, "rb") as file:
            if os.fstat(file.fileno()).st_size < 8:
                raise self._refused("expected a safetensors file, got less than 8 bytes")
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        (size,) = struct.unpack_from("<Q", self._bytes)
        if size > min(_MOST_HEADER_BYTES, len(self._bytes) - 8):
            raise self._refused(f"expected a header within the file, got one of {size} bytes")
        try:
            header = json.loads(self._bytes[8 : 8 + size])
        except ValueError:
            raise self._refused("expected a header in JSON") from None
        self._start = 8 + size
        self._entries = header if isinstance(header, dict) else {}
        tag = self._entries.pop("__metadata__", None)
        self._check_tag(tag if isinstance(tag, dict) else {})
        self.gelu, self.layout = tag["isobit.gelu"], tag["isobit.layout"]
        self._is_prescaled = tag["isobit.prescale"] != "none"
        end = ".gate_up.codes"
        self.names = [name.removesuffix(end) for name in self._entries if name.endswith(end)]

    def _refused(self, text: str) -> ValueError:
        return ValueError(f"{self._path}: {text}")

    def _check_tag(self, tag: dict) -> None:
        known = _known_tags()
        for key, words in known.items():
            if tag.get(key) not in words:
                raise self._refused(f"tag {key}: expected {' or '.join(map(repr, words))}, got {tag.get(key)!r}")
        for key in tag:
            if key.startswith("isobit.") and key not in known:
                raise self._refused(f"tag {key}: expected a key that this version knows, got a newer one")

    def _tensor(self, name: str, dtype: torch.dtype, dimensions: int) -> torch.Tensor:
        entry = self._entries.get(name)
        try:
            found, size = _DTYPES[entry["dtype"]]
            shape, (begin, end) = [int(n) for n in entry["shape"]], map(int, entry["data_offsets"])
        except (KeyError, TypeError, ValueError):
            raise self._refused(f"{name}: expected a tensor of bytes or float32") from None
        fits = 0 <= begin <= end <= len(self._bytes) - self._start and min(shape, default=1) >= 0
        if found != dtype or len(shape) != dimensions or not fits or end - begin != math.prod(shape) * size:
            raise self._refused(f"{name}: expected {dimensions} dimensions of {dtype} within the file, got {entry}")
        if begin == end:
            return torch.empty(shape, dtype=dtype)
        data = bytearray(self._bytes[self._start + begin : self._start + end])
        return torch.frombuffer(data, dtype=dtype).reshape(shape)

    def _matrix(self, name: str) -> Matrix:
        codes, scales = (self._tensor(f"{name}.{part}", torch.uint8, 2) for part in ("codes", "scales"))
        return Matrix(codes, scales, self.layout)

    def _number(self, name: str) -> float:
        values = self._tensor(name, torch.float32, 1)
        if values.numel() != 1 or not 0 < float(values[0]) < math.inf:
            raise self._refused(f"{name}: expected one positive finite number, got {values.tolist()[:4]}")
        return float(values[0])

    def mlp(self, name: str, *, input_amax: float, hidden_amax: float) -> Nvfp4Mlp:
        """The MLP of a layer, on the CPU (``.to(device)`` moves it).

        input_amax and hidden_amax are the largest absolute values of its input (after the pre-scale, if the file has
        one: divided as the weights were) and of gelu(gate(x)) * up(x) that calibration has seen. ValueError: no such
        layer, or a number that is not positive and finite.
        """
        if name not in self.names:
            raise self._refused(f"{name}: expected a layer out of {', '.join(self.names[:5])}, ...")
        factors = self._tensor(f"{name}.gate_up.input_scale", torch.float32, 1) if self._is_prescaled else None
        return Nvfp4Mlp.from_packed(
            self._matrix(f"{name}.gate_up"),
            self._matrix(f"{name}.down"),
            gelu=self.gelu,
            input_amax=input_amax,
            hidden_amax=hidden_amax,
            gate_scale=self._number(f"{name}.gate_up.gate_scale"),
            up_scale=self._number(f"{name}.gate_up.up_scale"),
            down_scale=self._number(f"{name}.down.scale"),
            input_factors=factors,
        )
