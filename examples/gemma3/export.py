"""What the demo scored, as files for `isobit score`.

Hidden states, token ids, and the head as a sharded checkpoint folder in the style of Hugging Face: an index, two
shards, tied embeddings.
"""

import json
import struct

import numpy as np

_NAMES = {"uint16": "BF16", "int64": "I64"}  # NumPy has no bfloat16: its bits are uint16


def _write(path, tensors):
    header, start = {}, 0
    for name, array in tensors.items():
        end = start + array.nbytes
        header[name] = {"dtype": _NAMES[array.dtype.name], "shape": array.shape, "data_offsets": [start, end]}
        start = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).data)


def export(folder, hidden, target, head):
    """hidden [N, H] and head [V, H] as bf16 bits, target [N] int64."""
    checkpoint = folder / "checkpoint"
    checkpoint.mkdir(parents=True, exist_ok=True)
    _write(folder / "hidden.safetensors", {"hidden_states": hidden})
    _write(folder / "targets.safetensors", {"targets": target})
    shards = {
        "model-00001-of-00002.safetensors": {"model.norm.weight": np.zeros(hidden.shape[1], np.uint16)},
        "model-00002-of-00002.safetensors": {"model.embed_tokens.weight": head},
    }
    index = {name: file for file, tensors in shards.items() for name in tensors}
    for file, tensors in shards.items():
        _write(checkpoint / file, tensors)
    (checkpoint / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    (checkpoint / "config.json").write_text(json.dumps({"tie_word_embeddings": True}))
