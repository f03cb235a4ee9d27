"""isobit.cupy on a CUDA device: the bytes of the NumPy calls, strides, streams. Skipped without CuPy or a device."""

import numpy as np
import pytest

import isobit

cupy = pytest.importorskip("cupy")
try:
    DEVICES = cupy.cuda.runtime.getDeviceCount()
except cupy.cuda.runtime.CUDARuntimeError:
    DEVICES = 0
pytestmark = pytest.mark.skipif(DEVICES == 0, reason="no CUDA device")


@pytest.fixture
def ic():
    import isobit.cupy  # noqa: PLC0415 - imports CuPy

    return isobit.cupy


def random(*shape, seed=0):
    return np.random.default_rng(seed + sum(shape)).standard_normal(shape, np.float32)


def same_bits(a, b):
    a = cupy.asnumpy(a)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def in_dtype(values, dtype):
    return isobit.to_bf16(values) if dtype == "bf16" else values.astype(dtype)


@pytest.mark.parametrize("dtype", ["bf16", "float16", "float32"])
@pytest.mark.parametrize("form", ["tanh", "erf"])
def test_geglu_and_its_gradient_have_the_bytes_of_the_numpy_call(ic, dtype, form):
    gate, up, d_out = (in_dtype(random(33, 96, seed=s), dtype) for s in range(3))
    a, b, d = map(cupy.asarray, (gate, up, d_out))
    assert same_bits(ic.geglu(a, b, gelu=form), isobit.geglu(gate, up, gelu=form))
    for found, expected in zip(
        ic.geglu_backward(d, a, b, gelu=form), isobit.geglu_backward(d_out, gate, up, gelu=form)
    ):
        assert same_bits(found, expected)


def test_the_halves_of_one_array_are_taken_as_they_are(ic):
    x = random(17, 128)
    on_gpu = cupy.asarray(x)
    expected = isobit.geglu(x[:, :64], x[:, 64:], gelu="tanh")
    assert same_bits(ic.geglu(on_gpu[:, :64], on_gpu[:, 64:], gelu="tanh"), expected)


def operands():
    hidden, weight = isobit.to_bf16(random(37, 64)), isobit.to_bf16(random(1001, 64) / 8)
    target = np.random.default_rng(3).integers(0, 1001, 37)
    target[5] = -100
    return hidden, weight, target, random(1001)


def test_linear_logp_has_the_bytes_of_the_numpy_call(ic):
    arrays = operands()
    hidden, weight, target, bias = arrays
    a, w, t, b = map(cupy.asarray, arrays)
    options = {"softcap": 20.0, "want": ("logp", "lse", "entropy", "rank"), "top": 3}
    found = ic.linear_logp(a, w, t, bias=b, temperature=cupy.full(37, 0.7, cupy.float32), **options)
    expected = isobit.linear_logp(
        hidden, weight, target, bias=bias, temperature=np.full(37, 0.7, np.float32), **options
    )
    for name in ("logp", "lse", "entropy", "rank", "top_id", "top_logp"):
        assert same_bits(getattr(found, name), getattr(expected, name)), name
    assert same_bits(ic.linear_logp(a[3:4], w, t[3:4]).logp, isobit.linear_logp(hidden, weight, target).logp[3:4])


def test_gradients_have_the_bytes_of_the_numpy_call(ic):
    hidden, weight, target, bias = operands()
    d = random(37)
    options = {"want": ("hidden", "weight", "bias")}
    found = ic.linear_logp_backward(*map(cupy.asarray, (hidden, weight, target)), d_logp=cupy.asarray(d),
                                    bias=cupy.asarray(bias), **options)  # fmt: skip
    expected = isobit.linear_logp_backward(hidden, weight, target, d_logp=d, bias=bias, subtract_p=True, **options)
    for name in ("hidden", "weight", "bias"):
        assert same_bits(getattr(found, name), getattr(expected, name)), name


def test_the_current_stream_is_used(ic):
    gate, up = random(256, 512), random(256, 512, seed=1)
    source, up_there = cupy.asarray(gate), cupy.asarray(up)
    there, other = cupy.zeros_like(source), cupy.cuda.Stream(non_blocking=True)
    large = cupy.ones((4096, 4096), cupy.float32)
    cupy.cuda.runtime.deviceSynchronize()
    with other:
        for _ in range(20):
            large = large @ large * 0  # keeps the stream busy: a call on another one would read the zeros
        there[...] = source
        out = ic.geglu(there, up_there, gelu="tanh")
    other.synchronize()
    assert same_bits(out, isobit.geglu(gate, up, gelu="tanh"))


def test_refusals(ic):
    gate = cupy.zeros((2, 4), cupy.float32)
    with pytest.raises(TypeError, match="up: expected a CuPy array"):
        ic.geglu(gate, np.zeros((2, 4), np.float32), gelu="tanh")
    with pytest.raises(TypeError, match="expected one of"):
        ic.geglu(gate.astype(cupy.float64), gate.astype(cupy.float64), gelu="tanh")
    with pytest.raises(ValueError, match="gelu"):
        ic.geglu(gate, gate, gelu="silu")
    with pytest.raises(isobit.InvalidArgumentError, match="up"):
        ic.geglu(gate, gate[:1], gelu="tanh")
