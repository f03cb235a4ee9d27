"""linear_logp under JAX: jit, grad and vmap, on the device that JAX takes by default."""

import jax
import jax.numpy as jnp

import isobit.jax

keys = jax.random.split(jax.random.key(0), 3)
hidden = jax.random.normal(keys[0], (16, 64)).astype(jnp.bfloat16)
weight = (jax.random.normal(keys[1], (1000, 64)) / 8).astype(jnp.bfloat16)
target = jax.random.randint(keys[2], (16,), 0, 1000)


@jax.jit
def loss(hidden, weight):
    return -isobit.jax.linear_logp(hidden, weight, target).logp.mean()


value, (d_hidden, d_weight) = jax.value_and_grad(loss, (0, 1))(hidden, weight)
print(f"loss {value:.4f}, gradients {d_hidden.dtype}{d_hidden.shape} and {d_weight.dtype}{d_weight.shape}")
rows = jax.vmap(lambda h, t: isobit.jax.linear_logp(h[None], weight, t[None]).logp[0])(hidden, target)
print(
    "row by row:", "equal bits" if (rows == isobit.jax.linear_logp(hidden, weight, target).logp).all() else "different"
)
