"""What the demo does with the library: scores rows, and shows that nothing but a row's content decides its bits."""

import numpy as np

import isobit

PROOF_ROWS = 64


def to_bf16(matrix):
    """bfloat16 bits of a large fp32 matrix, some rows at a time to spare memory."""
    return np.concatenate([isobit.to_bf16(part) for part in np.array_split(matrix, max(1, matrix.size // 2**23))])


def score(hidden, weight, target, threads=0):
    """The three numbers per row that the table shows."""
    result = isobit.linear_logp(hidden, weight, target, want=("logp", "entropy", "rank"), threads=threads)
    return np.stack([result.logp.view(np.uint32), result.entropy.view(np.uint32), result.rank.view(np.uint32)], axis=1)


def numpy_logp(hidden, weight, target):
    """The same log-probabilities through NumPy's fp32 matmul, as bits; its matrices are the bf16 values in fp32."""
    logits = hidden @ weight.T
    logits -= logits.max(axis=1, keepdims=True)
    logp = logits[np.arange(len(target)), target] - np.log(np.exp(logits).sum(axis=1))
    return logp.astype(np.float32).view(np.uint32)[:, None]


def differing_bits(first, second):
    return int(np.unpackbits((first ^ second).view(np.uint8)).sum())


def in_chunks(function, hidden, target, size):
    rows = range(0, len(target), size)
    return np.concatenate([function(hidden[i : i + size], target[i : i + size]) for i in rows])


def experiments(function, hidden, target):
    """Differing bits against one call with the whole batch, for each way to regroup the rows. A generator of
    (what, differing bits) so that the caller can print as results come."""
    batch = function(hidden, target)
    for size in (1, 7, 64):
        name = "each row alone" if size == 1 else f"in chunks of {size}"
        yield name, differing_bits(batch, in_chunks(function, hidden, target, size))
    order = np.roll(np.arange(len(target))[::-1], 5)
    moved = np.empty_like(batch)
    moved[order] = function(hidden[order], target[order])
    yield "in another order", differing_bits(batch, moved)
    half = len(target) // 2
    yield "second half of them alone", differing_bits(batch[half:], function(hidden[half:], target[half:]))


def fp64_logp(hidden, weight, target, block=16384):
    """Independent of the library: logits in fp64, a block of ids at a time, and log-sum-exp of all of them.

    Also returns, per row, a bound of how far the library's logp may be from it. Its logits are chains of ceil(H/16)
    steps; a step truncates 17 terms to multiples of 2^-25 of the largest and rounds toward zero to 24 bits, so it loses
    at most (17 * 2^-25 + 2^-23) * S with S = sum |h_k w_k|, which bounds every partial sum. logp is a difference of a
    logit and a mean of logits: twice that. exp2, the tree of at most 60 additions and the last fma are relative errors
    of the sum and of logp: (60 + 4) * 2^-24 and 4 * 2^-24 * |logp|.
    """
    hidden = hidden.astype(np.float64)
    top, total = np.full(len(target), -np.inf), np.zeros(len(target))
    magnitude, target_logit = np.zeros(len(target)), np.empty(len(target))
    for start in range(0, len(weight), block):
        part = weight[start : start + block].astype(np.float64).T
        logits = hidden @ part
        magnitude = np.maximum(magnitude, (np.abs(hidden) @ np.abs(part)).max(axis=1))
        here = (start <= target) & (target < start + block)
        target_logit[here] = logits[here, target[here] - start]
        larger = np.maximum(top, logits.max(axis=1))
        total = total * np.exp(top - larger) + np.exp(logits - larger[:, None]).sum(axis=1)
        top = larger
    logp = target_logit - top - np.log(total)
    steps = -(-hidden.shape[1] // 16)
    bound = 2 * steps * (17 * 2.0**-25 + 2.0**-23) * magnitude + (64 + 4 * np.abs(logp)) * 2.0**-24
    return logp, bound
