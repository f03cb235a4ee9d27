"""Scores a text with a language model through isobit's linear_logp, and shows that regrouping rows changes no bit.

`make demo` builds the library, fetches the model and runs this; scripts/demo.sh has the details.
"""

import argparse
import html
import os
import pathlib
import re
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "python"))

import export
import isobit
import model
import scoring
import sources
import tokenizer


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", nargs="*", help="text to score (default: one whose perplexity is known)")
    parser.add_argument("--model", choices=["auto", *sources.SOURCES], default="auto")
    parser.add_argument("--cache", type=pathlib.Path, default=pathlib.Path(".demo"), help="folder for the joined model")
    parser.add_argument("--export", type=pathlib.Path, metavar="FOLDER", help="also write files for `isobit score`")
    parser.add_argument("--terms", action="store_true", help="print the model's terms of use in full and stop")
    return parser.parse_args()


def print_terms(source):
    print(source.terms)
    page = source.terms.rsplit(": ", 1)[-1]
    if page.endswith(".html"):
        text = pathlib.Path(page).read_text(encoding="utf-8")
        text = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
        print(re.sub(r"\n\s*\n+", "\n\n", html.unescape(re.sub(r"<[^>]*>", "", text))))


class Head:
    """The LM head twice: bf16 bits for the library, the same values in fp32 for NumPy."""

    def __init__(self, network):
        self.bits = scoring.to_bf16(network.head)
        self.values = isobit.from_bf16(self.bits)


def rows_of(network, ids):
    """Final hidden states (bf16 bits) that predict a token, and the tokens that they predict."""
    return isobit.to_bf16(network.hidden(ids)[:-1]), np.array(ids[1:], np.int64)


def perplexity(logp):
    return float(np.exp(-np.mean(logp)))


def print_table(words, target, scores):
    print(f"{'token':<20}{'logp':>10}{'entropy':>10}{'rank':>9}")
    logp, entropy = scores[:, 0].view(np.float32), scores[:, 1].view(np.float32)
    for index, a, b, rank in zip(target, logp, entropy, scores[:, 2]):
        print(f"{words.show(index)!r:<20}{a:>10.4f}{b:>10.4f}{rank:>9}")


def check_perplexity(source, head, network, words, logp_of_default):
    """False if the model does not give the default text the perplexity that a right forward pass gives."""
    if logp_of_default is None:
        hidden, target = rows_of(network, words.encode(sources.TEXT))
        logp_of_default = scoring.score(hidden, head.bits, target)[:, 0].view(np.float32)
    value, (low, high) = perplexity(logp_of_default), source.perplexity
    good = low <= value <= high
    print(f"check: perplexity of the default text {value:.3f}, expected {low} to {high}: {'ok' if good else 'FAILED'}")
    return good


def check_fp64(head, hidden, target, scores):
    exact, bound = scoring.fp64_logp(isobit.from_bf16(hidden), head.values, target)
    error = np.abs(scores[:, 0].view(np.float32) - exact)
    good = bool((error <= bound).all())
    print(
        f"check: logp against a head in fp64 NumPy: largest difference {error.max():.2e}, "
        f"largest share of its derived bound {(error / bound).max():.4f}: {'ok' if good else 'FAILED'}"
    )
    return good


def prove(head, hidden, target):
    """Prints both columns of the experiment; True if the library's differs in no bit."""
    hidden, target = hidden[: scoring.PROOF_ROWS], target[: scoring.PROOF_ROWS]
    values = isobit.from_bf16(hidden)
    ours = scoring.experiments(lambda h, t: scoring.score(h, head.bits, t), hidden, target)
    theirs = scoring.experiments(lambda h, t: scoring.numpy_logp(h, head.values, t), values, target)
    print(f"\nThe same {len(target)} rows again, regrouped. Differing bits against one call with all of them:")
    print(f"{'':<28}{'isobit':>10}{'NumPy matmul':>15}")
    total = 0
    for (name, mine), (_, numpys) in zip(ours, theirs):
        print(f"{name:<28}{mine:>10}{numpys:>15}", flush=True)
        total += mine
    batch = scoring.score(hidden, head.bits, target)
    threads = 1 if (os.cpu_count() or 1) > 1 else 2
    mine = scoring.differing_bits(batch, scoring.score(hidden, head.bits, target, threads=threads))
    print(f"{f'with {threads} thread(s)':<28}{mine:>10}{'-':>15}")
    return total + mine == 0


def main():
    options = arguments()
    source = sources.find(options.model, options.cache)
    if options.terms:
        print_terms(source)
        return 0
    started = time.monotonic()
    print(f"model: {source.name}\nterms: {source.terms}")
    words = tokenizer.from_metadata(source.file.meta)
    network = model.Model(source.file)
    head = Head(network)
    text = " ".join(options.text) or sources.TEXT
    hidden, target = rows_of(network, words.encode(text))
    print(f"head: {head.bits.shape[0]} ids x {head.bits.shape[1]}, bf16; {len(target)} rows; {isobit.build_info()}\n")
    if len(target) == 0:
        print("text: expected at least one token, got none", file=sys.stderr)
        return 2
    scores = scoring.score(hidden, head.bits, target)
    print_table(words, target, scores)
    if options.export:
        export.export(options.export, hidden, target, head.bits)
    logp = scores[:, 0].view(np.float32)
    print(f"\nperplexity of the text: {perplexity(logp):.3f}")
    good = check_perplexity(source, head, network, words, logp if text == sources.TEXT else None)
    good = check_fp64(head, hidden, target, scores) and good
    good = prove(head, hidden, target) and good
    print(f"\n{'All checks passed' if good else 'A check FAILED'} in {time.monotonic() - started:.0f} s.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
