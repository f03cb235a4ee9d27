"""The backward pass of linear_logp through ctypes: values against NumPy in double precision, bytes against bytes."""

import numpy as np
import pytest

import isobit

UPSTREAM = ("d_logp", "d_lse", "d_entropy")


def make(rng, rows=6, hidden_size=32, vocabulary=160):
    hidden = isobit.to_bf16(rng.standard_normal((rows, hidden_size), np.float32))
    weight = isobit.to_bf16(rng.standard_normal((vocabulary, hidden_size), np.float32) / np.float32(4))
    target = rng.integers(0, vocabulary, rows)
    upstream = {name: rng.standard_normal(rows).astype(np.float32) for name in UPSTREAM}
    return hidden, weight, target, upstream


def oracle(hidden, weight, target, d_logp=0.0, d_lse=0.0, d_entropy=0.0, *, bias=0.0, temperature=1.0, softcap=0.0):
    h, w = isobit.from_bf16(hidden).astype(np.float64), isobit.from_bf16(weight).astype(np.float64)
    t = h @ w.T + bias
    capped = softcap * np.tanh(t / softcap) if softcap else t
    z = capped / temperature
    log_p = z - z.max(axis=1, keepdims=True)
    log_p = log_p - np.log(np.exp(log_p).sum(axis=1, keepdims=True))
    p = np.exp(log_p)
    entropy = -(p * log_p).sum(axis=1, keepdims=True)
    columns = [np.broadcast_to(x, len(target)).reshape(-1, 1) for x in (d_logp, d_lse, d_entropy)]
    dz = columns[0] * (np.eye(len(w))[target] - p) + columns[1] * p - columns[2] * p * (log_p + entropy)
    dt = dz / temperature * (1 - (capped / softcap) ** 2 if softcap else 1.0)
    return dt @ w, dt.T @ h, dt.sum(axis=0)


@pytest.mark.parametrize("present", [UPSTREAM[:1], UPSTREAM[1:2], UPSTREAM[2:], UPSTREAM])
@pytest.mark.parametrize("options", [{}, {"softcap": 5.0, "temperature": 0.7}])
def test_values_agree_with_double_precision(rng, present, options):
    hidden, weight, target, upstream = make(rng)
    upstream = {name: upstream[name] for name in present}
    bias = rng.standard_normal(len(weight)).astype(np.float32)
    got = isobit.linear_logp_backward(hidden, weight, target, bias=bias, want=("hidden", "weight", "bias"), **upstream,
                                      **options)  # fmt: skip
    for value, expected in zip(got, oracle(hidden, weight, target, bias=bias, **upstream, **options), strict=True):
        assert np.abs(value - expected).max() <= 0.01 * np.abs(expected).max()  # dz has eight bits


def test_a_saved_forward_pass_threads_and_workspace_change_no_byte(rng):
    hidden, weight, target, upstream = make(rng)
    want = isobit.linear_logp_backward(hidden, weight, target, **upstream)
    outputs, saved = isobit.linear_logp_save(hidden, weight, target, want=("logp", "entropy"))
    plain = isobit.linear_logp(hidden, weight, target, want=("logp", "entropy"))
    assert outputs.logp.tobytes() == plain.logp.tobytes() and outputs.entropy.tobytes() == plain.entropy.tobytes()
    for options in ({"saved": saved}, {"threads": 2}, {"workspace_limit": 3_000_000}):
        got = isobit.linear_logp_backward(hidden, weight, target, **upstream, **options)
        assert got.hidden.tobytes() == want.hidden.tobytes() and got.weight.tobytes() == want.weight.tobytes()


def test_one_upstream_value_for_every_row(rng):
    hidden, weight, target, _ = make(rng)
    one = np.broadcast_to(np.float32(-1 / 6), 6)
    assert one.strides == (0,)
    got = isobit.linear_logp_backward(hidden, weight, target, d_logp=one)
    want = isobit.linear_logp_backward(hidden, weight, target, d_logp=one.copy())
    assert got.hidden.tobytes() == want.hidden.tobytes()


def test_gradients_are_added_to_a_float32_buffer(rng):
    hidden, weight, target, upstream = make(rng)
    once = isobit.linear_logp_backward(hidden, weight, target, want=("weight",), **upstream).weight
    main_grad = np.full(weight.shape, 2.0, np.float32)
    got = isobit.linear_logp_backward(hidden, weight, target, want=("hidden",), **upstream,
                                      accumulate=isobit.LinearLogpGradients(weight=main_grad))  # fmt: skip
    assert got.weight is main_grad
    assert np.array_equal(main_grad, np.float32(2.0) + once)


def test_bfloat16_gradients_are_the_rounded_ones(rng):
    hidden, weight, target, upstream = make(rng)
    wide = isobit.linear_logp_backward(hidden, weight, target, **upstream)
    narrow = isobit.linear_logp_backward(hidden, weight, target, **upstream, dtype=np.uint16)
    assert narrow.hidden.tobytes() == isobit.to_bf16(wide.hidden).tobytes()
    assert narrow.weight.tobytes() == isobit.to_bf16(wide.weight).tobytes()


def test_refusals_name_the_argument(rng):
    hidden, weight, target, upstream = make(rng)
    with pytest.raises(isobit.InvalidArgumentError, match="at least one of d_logp"):
        isobit.linear_logp_backward(hidden, weight, target)
    with pytest.raises(isobit.InvalidArgumentError, match="bf16"):
        wide = hidden.astype(np.float16)
        isobit.linear_logp_backward(wide, weight.astype(np.float16), target, **upstream)
    with pytest.raises(ValueError, match="want"):
        isobit.linear_logp_backward(hidden, weight, target, want=("logits",), **upstream)


def test_bytes_that_are_not_those_of_the_saved_pass_are_refused(rng):
    hidden, weight, target, upstream = make(rng)
    _, saved = isobit.linear_logp_save(hidden, weight, target)
    for wrong, error in ((saved[:-1], ValueError), (saved[::2], TypeError), (saved.view(np.float32), TypeError)):
        with pytest.raises(error, match="saved: expected"):
            isobit.linear_logp_backward(hidden, weight, target, saved=wrong, **upstream)


def test_read_only_sums_are_refused(rng):
    hidden, weight, target, upstream = make(rng)
    sums = np.zeros(weight.shape, np.float32)
    sums.flags.writeable = False
    with pytest.raises(ValueError, match="weight: expected an array that may be written to"):
        isobit.linear_logp_backward(hidden, weight, target, **upstream,
                                    accumulate=isobit.LinearLogpGradients(weight=sums))  # fmt: skip
