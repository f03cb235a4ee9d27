"""A gated MLP with NVFP4 weights and activations, made of the three NVFP4 operators."""

from __future__ import annotations

import torch

from .._abi import GELU
from ._nvfp4 import Matrix, nvfp4_geglu, nvfp4_linear, nvfp4_quantize

_ENCODE = 2688.0  # 448 * 6: what an encode scale brings a tensor's largest value to


def tile_scales(scales: torch.Tensor) -> torch.Tensor:
    """Block scales [R, B] in linear order -> the 128x4 layout, padding 0 (isobit/nvfp4.h)."""
    rows, blocks = scales.shape
    padded = scales.new_zeros((rows + 127) // 128 * 128, (blocks + 3) // 4 * 4)
    padded[:rows, :blocks] = scales
    tiles = padded.view(-1, 4, 32, padded.shape[1] // 4, 4).permute(0, 3, 2, 1, 4)
    return tiles.reshape(padded.shape).contiguous()


def _amax_scale(tensor: torch.Tensor) -> float:
    """The encode scale of a tensor; 1 for a tensor of zeros, or of numbers so small that float32 has none for them."""
    largest = float(tensor.detach().abs().max())
    return _ENCODE / largest if largest > _ENCODE / torch.finfo(torch.float32).max else 1.0


def _calibrated(name: str, amax: float) -> float:
    """The encode scale of a largest value that calibration has seen."""
    if not 0 < amax < float("inf"):
        raise ValueError(f"{name}: expected a positive finite number, got {amax}")
    return _ENCODE / amax


class Nvfp4Mlp(torch.nn.Module):
    """down(gelu(gate(x)) * up(x)) on NVFP4 tensors. Forward only.

    Every global scale is fixed when the module is made, so a row's output depends on that row and the weights alone;
    a scale taken from each batch's own maximum would tie a row to its neighbours. A state dict holds the scales too.
    """

    def __init__(self, gate_up: Matrix, down: Matrix, *, gelu: str, input_scale: float, hidden_scale: float,
                 gate_scale: float, up_scale: float, down_scale: float,
                 input_factors: torch.Tensor | None = None):  # fmt: skip
        """The packed weights, and the global scales: input and hidden encode, the other three decode. input_factors,
        float32 [K]: x is multiplied by them first (the pre-scale of `isobit pack`)."""
        super().__init__()
        self.gelu = gelu
        self.layouts = gate_up.layout, down.layout
        self.scales = {"x_scale": 1 / input_scale, "gate_scale": gate_scale, "up_scale": up_scale,
                       "out_scale": hidden_scale}  # fmt: skip
        self.input_scale, self.down_scale = input_scale, down_scale
        for name, tensor in zip(("gate_up_codes", "gate_up_scales", "down_codes", "down_scales"),
                                (*gate_up[:2], *down[:2])):  # fmt: skip
            self.register_buffer(name, tensor)
        self.register_buffer("input_factors", input_factors)

    def get_extra_state(self) -> torch.Tensor:
        """What a state dict holds besides the packed weights: the form of GELU and the global scales, float64 [6]."""
        s = self.scales
        numbers = (GELU[self.gelu], self.input_scale, s["out_scale"], s["gate_scale"], s["up_scale"], self.down_scale)
        return torch.tensor(numbers, dtype=torch.float64)

    def set_extra_state(self, state: torch.Tensor) -> None:
        """Takes the global scales of a state dict. ValueError: the form of GELU is another one."""
        gelu, self.input_scale, hidden, gate, up, self.down_scale = state.tolist()
        if int(gelu) != GELU[self.gelu]:
            raise ValueError(f"gelu: expected {self.gelu!r} as this module has, got the state of another form")
        self.scales = {"x_scale": 1 / self.input_scale, "gate_scale": gate, "up_scale": up, "out_scale": hidden}

    @classmethod
    def from_weights(cls, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor, *, gelu: str, input_amax: float,
                     hidden_amax: float) -> Nvfp4Mlp:  # fmt: skip
        """Packs gate [I, K], up [I, K] and down [N, I] (bfloat16, float16 or float32; K and I multiples of 16).

        input_amax and hidden_amax are the largest absolute values of x and of gelu(gate(x)) * up(x) seen in
        calibration; values above them saturate.
        """
        scales = {name: _amax_scale(weight) for name, weight in (("gate", gate), ("up", up), ("down", down))}
        halves = [nvfp4_quantize(w, global_scale=scales[n], layout="linear") for n, w in (("gate", gate), ("up", up))]
        codes = torch.stack([half.codes for half in halves], 1).flatten(0, 1)
        blocks = torch.stack([half.scales for half in halves], 1).flatten(0, 1)
        return cls.from_packed(
            Matrix(codes, tile_scales(blocks)),
            nvfp4_quantize(down, global_scale=scales["down"]),
            gelu=gelu,
            input_amax=input_amax,
            hidden_amax=hidden_amax,
            gate_scale=1 / scales["gate"],
            up_scale=1 / scales["up"],
            down_scale=1 / scales["down"],
        )

    @classmethod
    def from_packed(cls, gate_up: Matrix, down: Matrix, *, input_amax: float, hidden_amax: float,
                    **options) -> Nvfp4Mlp:  # fmt: skip
        """From packed weights and the largest absolute values of calibration; other arguments as those of the class."""
        scales = {"input_scale": _calibrated("input_amax", input_amax),
                  "hidden_scale": _calibrated("hidden_amax", hidden_amax)}  # fmt: skip
        return cls(gate_up, down, **scales, **options)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [..., K] bfloat16, float16 or float32 -> [..., N], bfloat16, or float32 for float32."""
        if torch.is_grad_enabled() and x.requires_grad:
            raise RuntimeError("isobit.torch.Nvfp4Mlp: forward only; call it under torch.no_grad() or detach x")
        gate_up = Matrix(self.gate_up_codes, self.gate_up_scales, self.layouts[0])
        down = Matrix(self.down_codes, self.down_scales, self.layouts[1])
        rows = x.reshape(-1, x.shape[-1])
        if self.input_factors is not None:
            rows = rows * self.input_factors
        packed = nvfp4_quantize(rows, global_scale=self.input_scale)
        hidden = nvfp4_geglu(packed, gate_up, gelu=self.gelu, **self.scales)
        dtype = torch.float32 if x.dtype == torch.float32 else torch.bfloat16
        scales = {"x_scale": 1 / self.scales["out_scale"], "weight_scale": self.down_scale}
        out = nvfp4_linear(hidden, down, dtype=dtype, **scales)
        return out.view(*x.shape[:-1], out.shape[-1])


def nvfp4_mlp(x: torch.Tensor, mlp: Nvfp4Mlp) -> torch.Tensor:
    """The MLP as a function: mlp holds the packed weights and scales (Nvfp4Mlp.from_weights makes one)."""
    return mlp(x)
