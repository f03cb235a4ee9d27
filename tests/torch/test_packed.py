"""Files of `isobit pack`, read as modules: what the command wrote, and files that nobody should read."""

import json
import os
import struct
import subprocess
from pathlib import Path

import pytest
import torch
from conftest import as_bits, same_bits

import isobit.torch as it

CLI = Path(os.environ["ISOBIT_LIBRARY"]).resolve().parents[1] / "tools/isobit/isobit"
NAME = "model.layers.0.mlp"
NAMES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.uint8: "U8"}


def write_safetensors(path, tensors, metadata=None):
    header, data = ({"__metadata__": metadata} if metadata else {}), b""
    for name, tensor in tensors.items():
        content = as_bits(tensor).tobytes()
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(content)]}  # fmt: skip
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def weights():
    """gate, up and down, whose largest values make every global scale a power of two."""
    made = [(torch.randn(shape) / 8).clamp(-0.25, 0.25).bfloat16() for shape in ((48, 64), (48, 64), (64, 48))]
    for weight in made:
        weight[0, 0] = 0.328125  # 2688 / 8192
    return made


@pytest.fixture
def packed(tmp_path):
    """What the command makes of a checkpoint of one layer, and that layer's weights."""
    made = weights()
    parts = zip(("gate_proj", "up_proj", "down_proj"), made)
    write_safetensors(tmp_path / "model.safetensors", {f"{NAME}.{part}.weight": w for part, w in parts})
    (tmp_path / "config.json").write_text('{"model_type": "gemma2", "hidden_activation": "gelu_pytorch_tanh"}')

    def pack(*options):
        path = tmp_path / "packed.safetensors"
        subprocess.run([CLI, "pack", tmp_path, "-o", path, "--quiet", *options], check=True, capture_output=True)
        return it.PackedMlps(path)

    return pack, made, tmp_path


def test_a_packed_file_is_the_mlp_of_its_weights(packed):
    pack, made, _ = packed
    calibration = {"input_amax": 4.0, "hidden_amax": 8.0}
    expected = it.Nvfp4Mlp.from_weights(*made, gelu="tanh", **calibration)
    x = torch.randn(9, 64).bfloat16()
    for layout in ("128x4", "linear", "8x4"):
        file = pack("--layout", layout)
        assert (file.names, file.gelu, file.layout) == ([NAME], "tanh", layout)
        assert same_bits(file.mlp(NAME, **calibration)(x), expected(x))


def test_a_prescaled_file_multiplies_its_input(packed):
    pack, made, folder = packed
    write_safetensors(folder / "a.safetensors",
                      {f"{NAME}.input": torch.rand(64) + 0.1, f"{NAME}.hidden": torch.rand(48) + 0.1})  # fmt: skip
    mlp = pack("--activations", folder / "a.safetensors").mlp(NAME, input_amax=16.0, hidden_amax=8.0)
    assert mlp.input_factors.shape == (64,)
    x = torch.randn(9, 64).bfloat16()
    gate, up, down = (w.float() for w in made)
    exact = (torch.nn.functional.gelu(x.float() @ gate.T, approximate="tanh") * (x.float() @ up.T)) @ down.T
    got = mlp(x).float()
    assert (got - exact).norm() < 0.5 * exact.norm()
    assert torch.nn.functional.cosine_similarity(got.flatten(), exact.flatten(), 0) > 0.9
    other = pack("--activations", folder / "a.safetensors").mlp(NAME, input_amax=1.0, hidden_amax=1.0)
    other.load_state_dict(mlp.state_dict())
    assert same_bits(other(x), mlp(x))


def test_a_file_whose_tag_is_not_known_word_by_word_is_refused(packed):
    pack, _, folder = packed
    pack()
    whole = (folder / "packed.safetensors").read_bytes()
    (size,) = struct.unpack_from("<Q", whole)
    header = json.loads(whole[8 : 8 + size])

    def refused(change, message):
        changed = json.loads(json.dumps(header))
        change(changed)
        text = json.dumps(changed).encode()
        path = folder / "changed.safetensors"
        path.write_bytes(struct.pack("<Q", len(text)) + text + whole[8 + size :])
        with pytest.raises(ValueError, match=message):
            it.PackedMlps(path).mlp(NAME, input_amax=1.0, hidden_amax=1.0)

    codes = f"{NAME}.gate_up.codes"
    refused(lambda h: h.pop("__metadata__"), "tag isobit.format: expected 'nvfp4-mlp/0', got None")
    refused(lambda h: h["__metadata__"].update({"isobit.interleave": "halves"}), "tag isobit.interleave: expected")
    refused(lambda h: h["__metadata__"].update({"isobit.future": "1"}), "tag isobit.future: .* a newer one")
    refused(lambda h: h.pop(f"{NAME}.down.scale"), "down.scale: expected a tensor")
    refused(lambda h: h[codes].update(data_offsets=[0, 1 << 60]), "gate_up.codes: expected 2 dimensions")
    refused(lambda h: h[codes].update(shape=[-1, -1]), "gate_up.codes: expected 2 dimensions")
    refused(lambda h: h[codes].update(dtype="F32"), "gate_up.codes: expected 2 dimensions")
    refused(lambda h: h[codes].update(shape="x"), "gate_up.codes: expected a tensor")
    for content in (b"", b"\xff" * 16, struct.pack("<Q", 4) + b"{{{{", struct.pack("<Q", 2) + b"[]"):
        (folder / "short.safetensors").write_bytes(content)
        with pytest.raises(ValueError, match="expected"):
            it.PackedMlps(folder / "short.safetensors")
    with pytest.raises(ValueError, match="expected a layer out of"):
        it.PackedMlps(folder / "packed.safetensors").mlp("nobody", input_amax=1.0, hidden_amax=1.0)
