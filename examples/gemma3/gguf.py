"""Reader of GGUF version 3: key-value metadata, then tensor descriptions, then aligned tensor data."""

import mmap
import struct

import numpy as np

import quant

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9


class _Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self, code):
        (value,) = struct.unpack_from("<" + code, self.data, self.at)
        self.at += struct.calcsize("<" + code)
        return value

    def string(self):
        size = self.number("Q")
        self.at += size
        return bytes(self.data[self.at - size : self.at]).decode("utf-8", "replace")

    def value(self, kind):
        if kind == _STRING:
            return self.string()
        if kind == _ARRAY:
            element, count = self.number("I"), self.number("Q")
            return [self.value(element) for _ in range(count)]
        return self.number(_SCALARS[kind])


class Gguf:
    """Metadata in `meta`; `tensor(name)` gives a row-major fp32 array. The file stays mapped, tensors are made anew."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        cursor = _Cursor(self._data)
        if self._data[:4] != b"GGUF":
            raise ValueError(f"{path}: expected a GGUF file, got the first bytes {self._data[:4]!r}")
        cursor.at = 4
        version = cursor.number("I")
        if version != 3:
            raise ValueError(f"{path}: expected GGUF version 3, got {version}")
        tensors, pairs = cursor.number("Q"), cursor.number("Q")
        self.meta = {}
        for _ in range(pairs):
            key = cursor.string()
            self.meta[key] = cursor.value(cursor.number("I"))
        self._tensors = {}
        for _ in range(tensors):
            name = cursor.string()
            shape = [cursor.number("Q") for _ in range(cursor.number("I"))]
            self._tensors[name] = (shape[::-1], cursor.number("I"), cursor.number("Q"))  # GGUF lists the fastest first
        align = self.meta.get("general.alignment", 32)
        self._start = -(-cursor.at // align) * align

    def __contains__(self, name):
        return name in self._tensors

    def get(self, key):
        """Metadata of the architecture: get("block_count") is gemma3.block_count in a Gemma 3 file."""
        return self.meta[f"{self.meta['general.architecture']}.{key}"]

    def tensor(self, name):
        shape, kind, offset = self._tensors[name]
        count = int(np.prod(shape))
        start = self._start + offset
        if kind in quant.PLAIN_TYPES:
            _, dtype = quant.PLAIN_TYPES[kind]
            return np.frombuffer(self._data, dtype, count, start).astype(np.float32).reshape(shape)
        if kind not in quant.BLOCK_TYPES:
            raise ValueError(f"{name}: expected one of the types in quant.py, got GGUF type {kind}")
        _, values, size, dequantise = quant.BLOCK_TYPES[kind]
        blocks = np.frombuffer(self._data, np.uint8, count // values * size, start).reshape(-1, size)
        return dequantise(blocks).reshape(shape)
