"""The NVFP4 calls from Python: a whole MLP against NumPy, and refusals."""

import numpy as np
import pytest

import isobit

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
E4M3 = np.array(
    [(m / 8 * 2.0**-6 if e == 0 else (1 + m / 8) * 2.0 ** (e - 7)) for e in range(16) for m in range(8)][:127]
)


def quantize(values):
    scale = np.float32(2688 / np.abs(values).max())
    return isobit.nvfp4_quantize(values, global_scale=scale, layout="linear"), float(1 / scale)


def decode(matrix, scale):
    codes = np.stack([E2M1[matrix.codes & 15], E2M1[matrix.codes >> 4]], -1).reshape(len(matrix.codes), -1)
    return codes * np.repeat(E4M3[matrix.scales], 16, axis=1) * scale


def relative(got, wanted):
    return np.linalg.norm(got - wanted) / np.linalg.norm(wanted)


def test_mlp_is_that_of_numpy():
    random = np.random.default_rng(1)
    x, x_scale = quantize(random.standard_normal((5, 64), np.float32))
    weight, weight_scale = quantize(random.standard_normal((96, 64), np.float32) * np.float32(0.2))
    down, down_scale = quantize(random.standard_normal((32, 48), np.float32))
    xs, ws = decode(x, x_scale), decode(weight, weight_scale)
    gate, up = xs @ ws[0::2].T, xs @ ws[1::2].T
    wanted = gate * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3))) / 2 * up
    scales = {"x_scale": x_scale, "gate_scale": weight_scale, "up_scale": weight_scale}
    hidden = isobit.nvfp4_geglu(x, weight, gelu="tanh", out_scale=50.0, layout="linear", **scales)
    assert relative(decode(hidden, 1 / 50), wanted) < 0.11
    out = isobit.nvfp4_linear(hidden, down, x_scale=1 / 50, weight_scale=down_scale)
    assert relative(out, decode(hidden, 1 / 50) @ decode(down, down_scale).T) < 1e-5


def test_padding_is_zero():
    packed = isobit.nvfp4_quantize(np.ones((3, 48), np.float32))
    assert packed.scales.shape == (128, 4)
    assert np.count_nonzero(packed.scales) == 9


def test_refusals():
    x = isobit.nvfp4_quantize(np.ones((2, 32), np.float32))
    with pytest.raises(ValueError, match="gelu: expected 'tanh' or 'erf'"):
        isobit.nvfp4_geglu(x, x, gelu="silu")
    with pytest.raises(isobit.InvalidArgumentError, match="K a positive multiple of 16"):
        isobit.nvfp4_quantize(np.ones((2, 40), np.float32))
    with pytest.raises(isobit.InvalidArgumentError, match=r"x_scale\.value: expected a positive finite number"):
        isobit.nvfp4_linear(x, x, x_scale=0.0)
