"""The forward pass gives the perplexity it should, and a wrong one does not: each planted fault lies outside the range.

Runs on every model whose package is installed (ISOBIT_DEMO_CACHE keeps the joined file), always on the synthetic one.
"""

import os
import pathlib
import tempfile

import numpy as np
import pytest

import model
import sources
import tokenizer

CACHE = pathlib.Path(os.environ.get("ISOBIT_DEMO_CACHE", tempfile.gettempdir()))
OPENED = {name: source for name, opener in sources.SOURCES.items() if (source := opener(CACHE)) is not None}


@pytest.fixture(scope="module")
def case(request):
    source = OPENED[request.param]
    keep = {}  # weights are asked for again for every fault: dequantise them once
    original = source.file.tensor
    source.file.tensor = lambda name: keep[name] if name in keep else keep.setdefault(name, original(name))
    ids = tokenizer.from_metadata(source.file.meta).encode(sources.TEXT)
    yield source, model.Model(source.file), ids
    source.file.tensor = original


def on(names):
    """Runs a test on those of the named models that are there; the synthetic one always is."""
    return pytest.mark.parametrize("case", [name for name in names if name in OPENED], indirect=True, scope="module")


def perplexity(network, ids):
    logits = network.hidden(ids)[:-1] @ network.head.T
    logits -= logits.max(axis=1, keepdims=True)
    logp = logits[np.arange(len(ids) - 1), ids[1:]] - np.log(np.exp(logits).sum(axis=1))
    return float(np.exp(-logp.mean()))


def within(source, value):
    low, high = source.perplexity
    return low <= value <= high


@on(OPENED)
def test_perplexity_is_in_range(case):
    source, network, ids = case
    assert within(source, perplexity(network, ids))


def one_base(base):
    return lambda x, _, interleaved, rotate=model.rotate: rotate(x, base, interleaved)


def other_pairs(x, base, interleaved, rotate=model.rotate):
    return rotate(x, base, not interleaved)


def unit_offset(x, weight, epsilon, rms_norm=model.rms_norm):
    return rms_norm(x, weight + 1, epsilon)


def scaled_scores(factor):
    return lambda q, k, v, window, attend=model.attend: attend(q * np.float32(factor), k, v, window)


def late_mask(q, k, v, window, attend=model.attend):
    return attend(q, np.roll(k, -1, axis=0), np.roll(v, -1, axis=0), window)


BOTH = {
    "rope pairs": {"rotate": other_pairs},
    "no rope": {"rotate": lambda x, base, interleaved: x},
    "norm weight + 1": {"rms_norm": unit_offset},
    "scores too large": {"attend": scaled_scores(1.5)},
    "sees one token ahead": {"attend": late_mask},
}
FAULTS = {
    "gemma3": BOTH
    | {
        "global base in every layer": {"rotate": one_base(1e6)},
        "local base in every layer": {"rotate": one_base(1e4)},
        "silu for gelu": {"geglu": model.swiglu},
        "queries scaled by 1/1.2": {"attend": scaled_scores(1 / 1.2)},
    },
    "smollm2": BOTH | {"gelu for silu": {"swiglu": model.geglu}, "wrong base": {"rotate": one_base(1e4)}},
    "synthetic": {"norm weight + 1": BOTH["norm weight + 1"]},  # arbitrary weights make little use of positions
}


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(
    "case, fault", [(name, fault) for name in OPENED for fault in FAULTS[name]], indirect=["case"], scope="module"
)
def test_a_wrong_forward_pass_is_noticed(case, fault, monkeypatch, request):
    source, network, ids = case
    for function, wrong in FAULTS[request.node.callspec.params["case"]][fault].items():
        monkeypatch.setattr(model, function, wrong)
    assert not within(source, perplexity(network, ids))


@on(["gemma3"])
@pytest.mark.parametrize("every", [3, 5, 7])
def test_a_wrong_layer_pattern_is_noticed(case, every, monkeypatch):
    source, network, ids = case
    monkeypatch.setattr(model.Model, "GLOBAL_EVERY", every)
    assert not within(source, perplexity(network, ids))


@on(["gemma3"])
def test_embeddings_without_their_scale_are_noticed(case, monkeypatch):
    source, network, ids = case
    scale = np.sqrt(np.float32(network.embedding.shape[1]))
    monkeypatch.setattr(network, "embedding", network.embedding / scale)
    assert not within(source, perplexity(network, ids))


@on(OPENED)
def test_text_survives_the_tokenizer(case):
    source, _, _ = case
    words = tokenizer.from_metadata(source.file.meta)
    text = "A small test: 12 cats,\n\n  two dogs... and 3.14 \u00fcber-long \u732b words"
    ids = words.encode(text)[1:]
    if isinstance(words, tokenizer.ByteLevel):
        raw = b"".join(bytes(words._values[c] for c in words.pieces[i]) for i in ids)
    else:
        raw = b"".join(
            bytes([int(p[3:5], 16)]) if p.startswith("<0x") else p.replace("\u2581", " ").encode()
            for p in (words.pieces[i] for i in ids)
        )
    assert raw.decode() == text
