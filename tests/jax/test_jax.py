"""isobit.jax: the bytes of the NumPy calls under jit and vmap, gradients against JAX's own.

On the device that JAX takes by default, which is a GPU where there is one; on the CPU without jax-tvm-ffi's calls too.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isobit
import isobit.jax as ij
from isobit import _abi, _jax_ffi, _jax_host

WAYS = [_jax_ffi] + [_jax_host] * (jax.default_backend() == "cpu")


@pytest.fixture(params=WAYS, ids=lambda module: module.__name__)
def way(request, monkeypatch):
    monkeypatch.setattr(ij, "_calls", request.param)


def test_the_calls_of_xla_are_used():
    assert ij._calls is _jax_ffi


def random(*shape, dtype=jnp.bfloat16, seed=0):
    return jax.random.normal(jax.random.key(seed + sum(shape)), shape).astype(dtype)


def same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32])
@pytest.mark.parametrize("form", ["tanh", "erf"])
def test_geglu_and_its_gradient_have_the_bytes_of_the_numpy_call(way, dtype, form):
    gate, up, d_out = (random(5, 24, dtype=dtype, seed=s) for s in range(3))
    out, pull = jax.vjp(jax.jit(lambda a, b: ij.geglu(a, b, gelu=form)), gate, up)
    assert same_bits(out, isobit.geglu(np.asarray(gate), np.asarray(up), gelu=form))
    expected = isobit.geglu_backward(np.asarray(d_out), np.asarray(gate), np.asarray(up), gelu=form)
    assert all(same_bits(a, b) for a, b in zip(pull(d_out), expected))


def test_geglu_has_the_values_of_jax_and_vmaps():
    gate, up = random(3, 4, 8, dtype=jnp.float32), random(3, 4, 8, dtype=jnp.float32, seed=1)
    ours = jax.grad(lambda a, b: ij.geglu(a, b, gelu="tanh").sum(), (0, 1))(gate, up)
    theirs = jax.grad(lambda a, b: (jax.nn.gelu(a, approximate=True) * b).sum(), (0, 1))(gate, up)
    for a, b in zip(ours, theirs):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    each = jax.vmap(lambda a, b: ij.geglu(a, b, gelu="tanh"))(gate, up)
    assert same_bits(each, ij.geglu(gate, up, gelu="tanh"))


def operands(rows=6):
    target = jax.random.randint(jax.random.key(9), (rows,), 0, 300)
    return random(rows, 48), random(300, 48) / 7, target, random(300, dtype=jnp.float32)


def test_linear_logp_has_the_bytes_of_the_numpy_call(way):
    hidden, weight, target, bias = operands()
    found = jax.jit(lambda h: ij.linear_logp(h, weight, target, bias=bias, softcap=5.0, temperature=0.7))(hidden)
    arrays = [np.asarray(x) for x in (hidden, weight, target)]
    expected = isobit.linear_logp(*arrays, bias=np.asarray(bias), softcap=5.0, temperature=0.7,
                                  want=("logp", "lse", "entropy"))  # fmt: skip
    for name in ("logp", "lse", "entropy"):
        assert same_bits(getattr(found, name), getattr(expected, name)), name
    rows = jax.vmap(
        lambda h, t: ij.linear_logp(h[None], weight, t[None], bias=bias, softcap=5.0, temperature=0.7).logp[0]
    )
    assert same_bits(rows(hidden, target), expected.logp)


@pytest.mark.parametrize("with_bias", [True, False])
def test_gradients_of_linear_logp_are_those_of_jax(way, with_bias):
    hidden, weight, target, bias = operands()
    d = random(3, 6, dtype=jnp.float32)

    def ours(h, w, b):
        found = ij.linear_logp(h, w, target, bias=b)
        return (found.logp * d[0] + found.lse * d[1] + found.entropy * d[2]).sum()

    def theirs(h, w, b):
        z = h @ w.T + (0 if b is None else b)
        log_p = jax.nn.log_softmax(z)
        logp = jnp.take_along_axis(log_p, target[:, None], 1)[:, 0]
        return (logp * d[0] + jax.nn.logsumexp(z, 1) * d[1] - (jnp.exp(log_p) * log_p).sum(1) * d[2]).sum()

    b = bias if with_bias else None
    arguments = (0, 1, 2) if with_bias else (0, 1)
    got = jax.jit(jax.grad(ours, arguments))(hidden, weight, b)
    wanted = jax.grad(theirs, arguments)(hidden.astype(jnp.float32), weight.astype(jnp.float32), b)
    assert [x.dtype for x in got] == [x.dtype for x in (hidden, weight, bias)][: len(got)]
    for a, w in zip(got, map(np.asarray, wanted)):
        # dz is rounded to bf16 once, the sums of it to bf16 at the end
        np.testing.assert_allclose(np.asarray(a, np.float32), w, rtol=2**-7, atol=2**-8 * np.abs(w).max())


def test_the_backward_pass_asks_for_the_workspace_of_the_call_that_it_makes(monkeypatch):
    seen = []

    class Library:
        def __getattr__(self, name):
            return getattr(isobit._library.library, name)

        def isobit_linear_logp_backward_workspace(self, args, *sizes):
            seen.append(_abi.LinearLogpBackwardArgs.from_buffer_copy(args._obj))
            return isobit._library.library.isobit_linear_logp_backward_workspace(args, *sizes)

    monkeypatch.setattr(ij, "_calls", _jax_ffi)
    monkeypatch.setattr(_jax_ffi, "library", Library())
    hidden, weight, target, bias = operands()
    jax.grad(lambda h, w, b: ij.linear_logp(h, w, target, bias=b).logp.sum(), (0, 1, 2))(hidden, weight, bias)
    save, backward = seen[0], seen[-1]
    expected = {"d_hidden": (6, 48), "d_weight": (300, 48), "d_bias": (300,), "d_logp": (6,), "d_lse": (6,),
                "d_entropy": (6,)}  # fmt: skip
    for name, shape in expected.items():
        tensor = getattr(backward, name)
        assert tuple(tensor.shape[: tensor.rank]) == shape, name
        assert tensor.dtype == (_abi.BF16 if name in ("d_hidden", "d_weight") else _abi.FP32), name
        assert not getattr(save, name).data, name
    assert save.forward.logp.data
    assert not backward.forward.logp.data


def test_an_ignored_row_and_targets_of_several_ids():
    hidden, weight, target, _ = operands()
    target = jnp.stack([target, (target + 7) % 300], 1).at[2].set(-5)
    for ignored in (-5, None):
        found = jax.jit(lambda h, t, i=ignored: ij.linear_logp(h, weight, t, ignore_index=i))(hidden, target)
        expected = isobit.linear_logp(*(np.asarray(x) for x in (hidden, weight, target)), ignore_index=ignored)
        assert same_bits(found.logp, expected.logp)
        assert same_bits(found.lse, expected.lse)


def test_refusals(way):
    gate = random(2, 4)
    with pytest.raises(ValueError, match="up: expected"):
        ij.geglu(gate, gate[:1], gelu="tanh")
    with pytest.raises(Exception, match="gelu: expected"):
        ij.geglu(gate, gate, gelu="silu")
    hidden, weight, target, _ = operands()
    with pytest.raises(Exception, match=r"weight.*48.*47"):
        ij.linear_logp(hidden, weight[:, :47], target)
