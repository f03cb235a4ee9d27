"""The two tokenizers that the demo's models use, built from GGUF metadata."""

import heapq
import re

_USER_DEFINED, _BYTE = 4, 6  # tokenizer.ggml.token_type


def _merge(symbols, rank):
    """Byte-pair merging: again and again joins the neighbours whose `rank(left, right)` is smallest (leftmost first)
    until no pair has a rank. A heap of candidates keeps long texts fast; entries that went stale are skipped."""
    symbols = list(symbols)
    following = list(range(1, len(symbols))) + [None]
    preceding = [None] + list(range(len(symbols) - 1))
    heap = []

    def offer(left):
        right = following[left]
        if right is not None and (value := rank(symbols[left], symbols[right])) is not None:
            heapq.heappush(heap, (value, left, symbols[left], symbols[right]))

    for i in range(len(symbols)):
        offer(i)
    while heap:
        _, left, a, b = heapq.heappop(heap)
        right = following[left]
        if right is None or symbols[left] != a or symbols[right] != b:
            continue
        symbols[left], symbols[right] = a + b, None
        following[left] = following[right]
        if following[right] is not None:
            preceding[following[right]] = left
        offer(left)
        if preceding[left] is not None:
            offer(preceding[left])
    return [symbol for symbol in symbols if symbol is not None]


class SentencePiece:
    """Gemma's tokenizer: merges by score over characters, spaces as U+2581, unknown characters as UTF-8 bytes."""

    def __init__(self, meta):
        self.pieces = meta["tokenizer.ggml.tokens"]
        self._scores = meta["tokenizer.ggml.scores"]
        types = meta["tokenizer.ggml.token_type"]
        # Special tokens (<bos>, <start_of_turn>) are not among the mergeable ones: text cannot spell them.
        self._ids = {piece: i for i, piece in enumerate(self.pieces) if types[i] in (1, _USER_DEFINED)}
        self._bytes = [i for i, kind in enumerate(types) if kind == _BYTE]
        self._first = [meta["tokenizer.ggml.bos_token_id"]] if meta.get("tokenizer.ggml.add_bos_token") else []
        # User-defined pieces (runs of newlines or spaces, HTML tags) are cut out before merging, longest first.
        defined = sorted((p for p, kind in zip(self.pieces, types) if kind == _USER_DEFINED), key=len, reverse=True)
        self._defined = re.compile("(" + "|".join(map(re.escape, defined)) + ")") if defined else None

    def _rank(self, left, right):
        index = self._ids.get(left + right)
        return None if index is None else -self._scores[index]

    def encode(self, text):
        text = text.replace(" ", "\u2581")
        ids = list(self._first)
        for part in self._defined.split(text) if self._defined else [text]:
            for piece in [part] if part in self._ids else _merge(part, self._rank):
                if piece in self._ids:
                    ids.append(self._ids[piece])
                else:
                    ids += [self._bytes[byte] for byte in piece.encode()]
        return ids

    def show(self, index):
        return self.pieces[index].replace("\u2581", " ")


class ByteLevel:
    """SmolLM2's tokenizer: UTF-8 bytes written as printable characters, merged inside words by a ranked list."""

    # Digits stand alone; then contractions, words, other signs, white space. `re` has no \p{L}: [^\W\d_] are letters.
    _WORDS = re.compile(r"\d|'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")

    def __init__(self, meta):
        self.pieces = meta["tokenizer.ggml.tokens"]
        self._ids = {piece: i for i, piece in enumerate(self.pieces)}
        self._ranks = {tuple(pair.split(" ")): i for i, pair in enumerate(meta["tokenizer.ggml.merges"])}
        # Documents were separated by this token in training; the file's bos_token_id opens a chat turn instead.
        self._first = [self._ids["<|endoftext|>"]]
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        others = [byte for byte in range(256) if byte not in printable]
        self._characters = {byte: chr(byte) for byte in printable}
        self._characters |= {byte: chr(256 + i) for i, byte in enumerate(others)}
        self._values = {character: byte for byte, character in self._characters.items()}

    def encode(self, text):
        ids = list(self._first)
        for word in self._WORDS.findall(text):
            symbols = [self._characters[byte] for byte in word.encode()]
            ids += [self._ids[piece] for piece in _merge(symbols, lambda a, b: self._ranks.get((a, b)))]
        return ids

    def show(self, index):
        return bytes(self._values.get(c, 63) for c in self.pieces[index]).decode("utf-8", "replace")


def from_metadata(meta):
    kinds = {"llama": SentencePiece, "gpt2": ByteLevel}
    return kinds[meta["tokenizer.ggml.model"]](meta)
