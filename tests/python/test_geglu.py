"""geglu through ctypes: values against the formulas in double precision, bytes across layouts."""

import math

import numpy as np
import pytest

import isobit

CONVERT = {"bfloat16": isobit.to_bf16, "float16": np.float16, "float32": np.float32}
# Half a unit in the last place of the result, and a little for fp32 intermediates.
RELATIVE = {"bfloat16": 2**-8, "float16": 2**-11, "float32": 2**-20}
SMALLEST = {"bfloat16": 2**-133, "float16": 2**-24, "float32": 2**-149}


def widen(array):
    return (isobit.from_bf16(array) if array.dtype == np.uint16 else array).astype(np.float64)


def gelu_and_slope(a, form):
    if form == "erf":
        phi = (1 + np.vectorize(math.erf)(a / math.sqrt(2))) / 2
        return a * phi, phi + a * np.exp(-a * a / 2) / math.sqrt(2 * math.pi)
    t = np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a**3))
    slope = (1 + t) / 2 + a / 2 * (1 - t * t) * math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * a**2)
    return a * (1 + t) / 2, slope


def make(rng, dtype, shape=(7, 33)):
    return tuple(CONVERT[dtype](rng.standard_normal(shape).astype(np.float32)) for _ in range(3))


@pytest.mark.parametrize("dtype", CONVERT)
@pytest.mark.parametrize("form", ["tanh", "erf"])
def test_values_agree_with_the_formulas(rng, dtype, form):
    gate, up, d_out = make(rng, dtype)
    a, b, d = widen(gate), widen(up), widen(d_out)
    value, slope = gelu_and_slope(a, form)
    # gelu' has a zero near -0.75: the error there is relative to its parts, not to their difference.
    close = {"rtol": RELATIVE[dtype], "atol": 4 * RELATIVE["float32"] + SMALLEST[dtype]}
    np.testing.assert_allclose(widen(isobit.geglu(gate, up, gelu=form)), value * b, **close)
    d_gate, d_up = isobit.geglu_backward(d_out, gate, up, gelu=form)
    np.testing.assert_allclose(widen(d_gate), d * b * slope, **close)
    np.testing.assert_allclose(widen(d_up), d * value, **close)


@pytest.mark.parametrize("layout", ["stacked", "interleaved"])
def test_layouts_change_no_bit(rng, layout):
    gate, up, d_out = make(rng, "bfloat16")
    if layout == "stacked":
        x = np.concatenate([gate, up], axis=1)
        first, second = x[:, :33], x[:, 33:]
    else:
        x = np.stack([gate, up], axis=2)
        first, second = x[:, :, 0], x[:, :, 1]
    assert isobit.geglu(first, second, gelu="tanh").tobytes() == isobit.geglu(gate, up, gelu="tanh").tobytes()
    for a, b in zip(isobit.geglu_backward(d_out, first, second, gelu="tanh"),
                    isobit.geglu_backward(d_out, gate, up, gelu="tanh")):  # fmt: skip
        assert a.tobytes() == b.tobytes()


def test_in_place_backward_has_the_same_bytes(rng):
    gate, up, d_out = make(rng, "float16")
    apart = isobit.geglu_backward(d_out, gate, up, gelu="erf")
    inside = isobit.geglu_backward(d_out, gate, up, gelu="erf", in_place=True)
    assert inside[0] is gate
    assert [x.tobytes() for x in apart] == [x.tobytes() for x in inside]


def test_aliasing_without_in_place_is_refused_and_loses_nothing(rng):
    gate, up, d_out = make(rng, "float32")
    before = gate.copy()
    with pytest.raises(isobit.InvalidArgumentError):
        isobit.geglu_backward(d_out, gate, up, gelu="tanh", d_gate=gate)
    assert gate.tobytes() == before.tobytes()


def test_there_is_no_default_form(rng):
    gate, up, _ = make(rng, "float32")
    with pytest.raises(TypeError, match="gelu"):
        isobit.geglu(gate, up)
    with pytest.raises(ValueError, match="gelu"):
        isobit.geglu(gate, up, gelu="fast")


def test_a_read_only_output_is_refused_and_keeps_its_bytes(rng):
    gate, up, d_out = make(rng, "float32")
    out = np.full_like(gate, 7)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out: expected an array that may be written to"):
        isobit.geglu(gate, up, gelu="tanh", out=out)
    with pytest.raises(ValueError, match="d_up: expected an array that may be written to"):
        isobit.geglu_backward(d_out, gate, up, gelu="tanh", d_up=out)
    up.flags.writeable = False
    with pytest.raises(ValueError, match="d_up: expected an array that may be written to"):
        isobit.geglu_backward(d_out, gate, up, gelu="tanh", in_place=True)
    assert (out == 7).all()
