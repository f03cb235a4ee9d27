"""What NVFP4 costs Gemma 3 270M: its MLPs packed by `isobit pack`, with and without the pre-scale, and run through
isobit's quantiser, nvfp4_geglu and nvfp4_linear. The rest of the model stays as it is.

    .demo/venv/bin/python examples/gemma3/nvfp4.py --isobit build/dev/tools/isobit/isobit

Prints JSON lines: per layer the fused path against the staged recipe and against the unpacked weights, through the
down projection; per variant the log-probability of the demo's text. Statistics and global scales of activations come
from another text.
"""

import argparse
import json
import pathlib
import struct
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))

import isobit
import model
import scoring
import sources
import tokenizer

# For the statistics; the scored text is another one.
CALIBRATION = (
    "Bread needs little more than flour, water, salt and time. Mix them in the evening, leave the dough in a cool "
    "room, and by the morning it has doubled. Fold it, shape it, and let it rest while the oven gets very hot. "
    "def area(width, height):\n    return width * height\n\nprint(area(3, 4))  # 12\n"
    "In 1869 the first railway across North America was finished; a journey of six months became one of eight days. "
    "Why is the sky blue? Because air scatters short waves more than long ones."
)
ENCODE = 2688.0  # 448 * 6: what an encode scale brings the largest magnitude to
PARTS = {"gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}


def write_safetensors(path, tensors):
    names = {"uint16": "BF16", "float32": "F32"}
    header, start = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": names[array.dtype.name], "shape": array.shape,
                        "data_offsets": [start, start + array.nbytes]}  # fmt: skip
        start += array.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(np.ascontiguousarray(array).data)


def read_safetensors(path):
    data = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    dtypes = {"U8": np.uint8, "F32": np.float32}
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            part = data[8 + size + begin : 8 + size + end]
            tensors[name] = np.frombuffer(part, dtypes[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def layer_name(layer):
    return f"model.layers.{layer}.mlp"


class Recorder(model.Model):
    """Keeps what goes into every MLP and what comes out of its activation."""

    def __init__(self, gguf):
        super().__init__(gguf)
        self.inputs, self.hiddens = {}, {}

    def _mlp(self, x, layer, weight):
        hidden = model.geglu(x @ weight("ffn_gate").T, x @ weight("ffn_up").T)
        self.inputs[layer], self.hiddens[layer] = x, hidden
        return hidden @ weight("ffn_down").T


class Packed:
    """One layer's packed weights, and global scales from the calibration text."""

    def __init__(self, tensors, name, inputs, hiddens):
        def matrix(part):
            return isobit.Nvfp4Matrix(tensors[f"{name}.{part}.codes"], tensors[f"{name}.{part}.scales"])

        self.gate_up, self.down = matrix("gate_up"), matrix("down")
        self.scales = {part: float(tensors[f"{name}.{part}"][0])
                       for part in ("gate_up.gate_scale", "gate_up.up_scale", "down.scale")}  # fmt: skip
        self.input_scale = tensors.get(f"{name}.gate_up.input_scale", np.float32(1))
        self.encode_x = float(ENCODE / np.abs(inputs * self.input_scale).max())
        self.encode_hidden = None
        sums = self.product(self.quantise(inputs))
        hidden = model.geglu(sums[:, 0::2] * self.scales["gate_up.gate_scale"],
                             sums[:, 1::2] * self.scales["gate_up.up_scale"])  # fmt: skip
        self.encode_hidden = float(ENCODE / np.abs(hidden).max())

    def quantise(self, x):
        scaled = np.ascontiguousarray(x * self.input_scale, np.float32)
        return isobit.nvfp4_quantize(scaled, global_scale=self.encode_x)

    def product(self, packed):
        """The merged product with the global scale of x, in fp32."""
        return isobit.nvfp4_linear(packed, self.gate_up, x_scale=1 / self.encode_x)

    def project(self, hidden):
        scales = {"x_scale": 1 / self.encode_hidden, "weight_scale": self.scales["down.scale"]}
        return isobit.nvfp4_linear(hidden, self.down, **scales)

    def fused(self, x):
        hidden = isobit.nvfp4_geglu(
            self.quantise(x), self.gate_up, gelu="tanh", x_scale=1 / self.encode_x,
            gate_scale=self.scales["gate_up.gate_scale"], up_scale=self.scales["gate_up.up_scale"],
            out_scale=self.encode_hidden)  # fmt: skip
        return self.project(hidden)

    def staged(self, x):
        """Product, GeGLU and quantiser apart: both intermediate results are rounded to bf16."""
        sums = self.product(self.quantise(x))
        gate, up = (isobit.to_bf16(np.ascontiguousarray(sums[:, half::2] * self.scales[f"gate_up.{part}_scale"]))
                    for half, part in ((0, "gate"), (1, "up")))  # fmt: skip
        hidden = isobit.geglu(gate, up, gelu="tanh")
        return self.project(isobit.nvfp4_quantize(hidden, global_scale=self.encode_hidden))


class PackedModel(model.Model):
    def __init__(self, gguf, layers):
        super().__init__(gguf)
        self.layers = layers

    def _mlp(self, x, layer, weight):
        return self.layers[layer].fused(x)


def export(gguf, recorder, folder):
    """The MLPs as a checkpoint of Hugging Face's names, and the statistics of their activations."""
    folder.mkdir(parents=True, exist_ok=True)
    weights, statistics = {}, {}
    for layer, inputs in recorder.inputs.items():
        for part, name in PARTS.items():
            tensor = gguf.tensor(f"blk.{layer}.{name}.weight")
            weights[f"{layer_name(layer)}.{part}_proj.weight"] = scoring.to_bf16(tensor)
        statistics[f"{layer_name(layer)}.input"] = np.abs(inputs).mean(0).astype(np.float32)
        statistics[f"{layer_name(layer)}.hidden"] = np.abs(recorder.hiddens[layer]).mean(0).astype(np.float32)
    write_safetensors(folder / "model.safetensors", weights)
    (folder / "config.json").write_text(
        json.dumps({"model_type": "gemma3_text", "hidden_activation": "gelu_pytorch_tanh"})
    )
    write_safetensors(folder / "statistics.safetensors", statistics)


def compare(got, wanted):
    got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    error = np.linalg.norm(got - wanted) / np.linalg.norm(wanted)
    cosine = np.sum(got * wanted) / (np.linalg.norm(got) * np.linalg.norm(wanted))
    return {"relative_l2": round(float(error), 5), "cosine": round(float(cosine), 6)}


def log_probability(network, head, ids):
    hidden = isobit.to_bf16(network.hidden(ids)[:-1])
    return float(isobit.linear_logp(hidden, head, np.array(ids[1:], np.int64)).logp.mean())


def emit(**fields):
    print(json.dumps(fields), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--isobit", required=True, help="the command line")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path(".demo"), help="folder for what is made")
    parser.add_argument("--alpha", type=float, nargs="*", default=[0.25, 0.5], help="powers of the pre-scale to try")
    options = parser.parse_args()
    source = sources.find("gemma3", options.cache)
    words = tokenizer.from_metadata(source.file.meta)
    recorder, scored = Recorder(source.file), Recorder(source.file)
    recorder.hidden(words.encode(CALIBRATION))
    folder = options.cache / "nvfp4"
    export(source.file, recorder, folder)
    ids = words.encode(sources.TEXT)
    head = scoring.to_bf16(recorder.head)
    base = log_probability(scored, head, ids)
    emit(model=source.name, variant="unpacked", tokens=len(ids) - 1, mean_logp=round(base, 5))
    for alpha in [None, *options.alpha]:
        packed_file = folder / "packed.safetensors"
        command = [options.isobit, "pack", str(folder), "-o", str(packed_file), "--quiet"]
        if alpha is not None:
            command += ["--activations", str(folder / "statistics.safetensors"), "--alpha", str(alpha)]
        reports = [json.loads(line) for line in subprocess.check_output(command, text=True).splitlines()]
        tensors = read_safetensors(packed_file)
        layers = [Packed(tensors, layer_name(i), recorder.inputs[i], recorder.hiddens[i]) for i in recorder.inputs]
        variant = "nvfp4" if alpha is None else f"nvfp4, pre-scale alpha {alpha}"
        for i, layer in enumerate(layers):
            x = scored.inputs[i]
            fused = layer.fused(x)
            exact = scored.hiddens[i] @ source.file.tensor(f"blk.{i}.ffn_down.weight").T
            weights = {r["matrix"]: round(r["relative_l2"], 4) for r in reports if r["layer"] == layer_name(i)}
            emit(variant=variant, layer=i, against_staged=compare(fused, layer.staged(x)),
                 against_unpacked=compare(fused, exact), weights=weights)  # fmt: skip
        value = log_probability(PackedModel(source.file, layers), head, ids)
        emit(variant=variant, tokens=len(ids) - 1, mean_logp=round(value, 5), change=round(value - base, 5),
             saturated=max(r["saturated"] for r in reports), flushed=max(r["flushed"] for r in reports))  # fmt: skip


if __name__ == "__main__":
    main()
