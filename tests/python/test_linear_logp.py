"""linear_logp through ctypes: values against NumPy in double precision, bytes against bytes."""

import itertools

import numpy as np
import pytest

import isobit

EVERYTHING = ("logp", "lse", "entropy", "rank", "target_logit")


def make(rng, rows=5, hidden_size=48, vocabulary=1000, dtype="bfloat16"):
    hidden = rng.standard_normal((rows, hidden_size), np.float32)
    weight = rng.standard_normal((vocabulary, hidden_size), np.float32) / np.float32(np.sqrt(hidden_size))
    target = rng.integers(0, vocabulary, rows)
    convert = isobit.to_bf16 if dtype == "bfloat16" else np.float16
    return convert(hidden), convert(weight), target


def widen(array):
    return (isobit.from_bf16(array) if array.dtype == np.uint16 else array).astype(np.float64)


def oracle(hidden, weight, target, *, bias=0.0, temperature=1.0, softcap=0.0):
    z = widen(hidden) @ widen(weight).T + bias
    if softcap:
        z = softcap * np.tanh(z / softcap)
    z = z / np.reshape(temperature, (-1, 1))
    peak = z.max(axis=1, keepdims=True)
    p = np.exp(z - peak)
    lse = np.log(p.sum(axis=1)) + peak[:, 0]
    entropy = lse - (p * z).sum(axis=1) / p.sum(axis=1)
    logit = np.take_along_axis(z, target.reshape(len(target), -1), axis=1).reshape(target.shape)
    return z, logit - lse.reshape(-1, *[1] * (target.ndim - 1)), lse, entropy, logit


def same_bytes(a, b):
    for name, x, y in zip(isobit.LinearLogp._fields, a, b, strict=True):
        assert (x is None) == (y is None), name
        assert x is None or x.tobytes() == y.tobytes(), name


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("options", [{}, {"softcap": 3.0}, {"temperature": 0.5}, {"softcap": 5.0, "temperature": 2.0}])
def test_values_agree_with_double_precision(rng, dtype, options):
    hidden, weight, target = make(rng, dtype=dtype)
    bias = rng.standard_normal(len(weight)).astype(np.float32)
    got = isobit.linear_logp(hidden, weight, target, bias=bias, want=EVERYTHING, **options)
    z, logp, lse, entropy, logit = oracle(hidden, weight, target, bias=bias, **options)
    np.testing.assert_allclose(got.logp, logp, atol=2e-5)
    np.testing.assert_allclose(got.lse, lse, atol=2e-5)
    np.testing.assert_allclose(got.entropy, entropy, atol=5e-5)
    np.testing.assert_allclose(got.target_logit, logit, atol=2e-5)
    assert np.array_equal(got.rank, (z > logit[:, None]).sum(axis=1))


def test_a_row_has_the_same_bytes_alone_and_in_any_place_of_a_batch(rng):
    hidden, weight, target = make(rng, rows=67)
    whole = isobit.linear_logp(hidden, weight, target, want=EVERYTHING, top=3)
    order = rng.permutation(67)
    shuffled = isobit.linear_logp(hidden[order], weight, target[order], want=EVERYTHING, top=3)
    same_bytes(isobit.LinearLogp(*(x[order] for x in whole)), shuffled)
    for row in (0, 33, 66):
        alone = isobit.linear_logp(hidden[row : row + 1], weight, target[row : row + 1], want=EVERYTHING, top=3)
        same_bytes(isobit.LinearLogp(*(x[row : row + 1] for x in whole)), alone)


@pytest.mark.parametrize("options", [{"threads": 1}, {"threads": 2}, {"workspace_limit": 1 << 18}])
def test_threads_and_workspace_change_no_bit(rng, options):
    hidden, weight, target = make(rng, rows=40, vocabulary=3000)
    same_bytes(isobit.linear_logp(hidden, weight, target, want=EVERYTHING),
               isobit.linear_logp(hidden, weight, target, want=EVERYTHING, **options))  # fmt: skip


def test_row_strides_change_no_bit(rng):
    hidden, weight, target = make(rng)
    wide = np.full((hidden.shape[0] * 2, hidden.shape[1] + 7), 0x7FC0, np.uint16)
    wide[::2, :-7] = hidden
    same_bytes(isobit.linear_logp(hidden, weight, target), isobit.linear_logp(wide[::2, :-7], weight, target))


@pytest.mark.parametrize("borders", [(), (1,), (500,), (127, 129, 131), (64, 128, 999)])
def test_shards_give_the_bytes_of_the_whole(rng, borders):
    hidden, weight, target = make(rng)
    vocabulary = len(weight)
    whole = isobit.linear_logp(hidden, weight, target, want=("logp", "lse", "entropy"))
    edges = [0, *borders, vocabulary]
    shards = [
        isobit.linear_logp_shard(hidden, weight[a:b], target, first_id=a, vocab_size=vocabulary,
                                 want=("logp", "lse", "entropy"))
        for a, b in itertools.pairwise(edges)
    ]  # fmt: skip
    merged = isobit.linear_logp_merge(target, shards[::-1], vocab_size=vocabulary, want=("logp", "lse", "entropy"))
    same_bytes(whole, merged)


def test_a_state_that_lost_bytes_on_its_way_is_refused(rng):
    hidden, weight, target = make(rng)
    options = {"vocab_size": 1000, "want": ("logp", "entropy")}
    shards = [isobit.linear_logp_shard(hidden, weight[a:b], target, first_id=a, **options)
              for a, b in ((0, 333), (333, 1000))]  # fmt: skip
    assert isobit.linear_logp_merge(target, shards, **options).entropy is not None
    for wrong, error in ((shards[0].data[:-1], ValueError), (shards[0].data.view(np.int32), TypeError)):
        with pytest.raises(error, match="shards: expected"):
            isobit.linear_logp_merge(target, [shards[0]._replace(data=wrong), shards[1]], **options)


def test_several_targets_a_row_and_the_top_list(rng):
    hidden, weight, _ = make(rng)
    target = rng.integers(0, len(weight), (len(hidden), 3), np.int32)
    got = isobit.linear_logp(hidden, weight, target, want=("logp", "rank"), top=4)
    z, logp, lse, _, _ = oracle(hidden, weight, target)
    np.testing.assert_allclose(got.logp, logp, atol=2e-5)
    assert np.array_equal(got.top_id, np.argsort(-z, axis=1, kind="stable")[:, :4])
    np.testing.assert_allclose(got.top_logp, np.take_along_axis(z, got.top_id, axis=1) - lse[:, None], atol=2e-5)


def test_an_ignored_row_is_zero_and_its_hidden_state_is_not_used(rng):
    hidden, weight, target = make(rng)
    target[2] = -100
    hidden[2] = 0x7FC0  # NaN
    got = isobit.linear_logp(hidden, weight, target, want=("logp", "lse", "entropy"))
    for output in (got.logp, got.lse, got.entropy):
        assert output[2] == 0
        assert np.isfinite(output).all()


def test_a_target_outside_the_vocabulary_makes_its_row_nan(rng):
    hidden, weight, target = make(rng)
    target[1] = len(weight)
    got = isobit.linear_logp(hidden, weight, target)
    assert np.isnan(got.logp).tolist() == [False, True, False, False, False]


def test_validate_names_the_first_row_that_would_be_nan(rng):
    hidden, weight, target = make(rng)
    assert isobit.linear_logp_validate(hidden, weight, target) == -1
    target[3], target[1] = -7, -100
    assert isobit.linear_logp_validate(hidden, weight, target) == 3
    temperature = np.ones(len(target), np.float32)
    temperature[2] = 0
    assert isobit.linear_logp_validate(hidden, weight, target, temperature=temperature) == 2


def test_no_rows_is_legal(rng):
    hidden, weight, target = make(rng)
    assert isobit.linear_logp(hidden[:0], weight, target[:0]).logp.shape == (0,)


def test_a_refusal_names_argument_rule_and_what_was_found(rng):
    hidden, weight, target = make(rng)
    with pytest.raises(ValueError, match=r"weight.*48.*47") as caught:
        isobit.linear_logp(hidden, weight[:, :47], target)
    assert caught.value.status == 1
    with pytest.raises(isobit.InvalidArgumentError, match="kernel"):
        isobit.linear_logp(hidden, weight, target, kernel="nonsense")
    with pytest.raises(isobit.Error, match="workspace"):
        isobit.linear_logp(hidden, weight, target, workspace_limit=0)
    with pytest.raises(ValueError, match="want"):
        isobit.linear_logp(hidden, weight, target, want=("nonsense",))
