"""Writes the safetensors corpus beside this file: valid/ parses, malformed/ is refused for the reason in its name.

The files are committed; run this again only to add a case, then add its message to malformed/expected.txt.
"""

import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent


def file(header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(dtype="F32", shape=(2,), offsets=(0, 8), **extra):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **extra}


EIGHT = bytes(range(8))

VALID = {
    "empty": file({}),
    "one": file({"a": tensor()}, EIGHT),
    "two_out_of_order": file({"b": tensor(offsets=(8, 16)), "a": tensor()}, EIGHT * 2),
    "metadata": file({"__metadata__": {"format": "pt"}, "a": tensor()}, EIGHT),
    "padded": file(json.dumps({"a": tensor()}).encode() + b"   ", EIGHT),
    "scalar": file({"a": tensor(shape=(), offsets=(0, 4))}, EIGHT[:4]),
    "no_elements": file({"a": tensor(shape=(0, 2**63), offsets=(0, 0)), "b": tensor()}, EIGHT),
    "four_bit": file({"a": tensor(dtype="F4", shape=(2, 8))}, EIGHT),
    "unicode_name": file({"größe\n": tensor()}, EIGHT),
    "odd_address": file(b'{"a":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]}}  ', EIGHT),
}

MALFORMED = {
    "size_zero": b"",
    "size_seven": bytes(7),
    "length_zero": file(b"", length=0),
    "length_one": file(b"{", length=1),
    "length_over_file": file({}, length=3),
    "length_over_limit": file({}, length=100_000_001),
    "length_huge": file({}, length=2**64 - 1),
    "header_not_object": file(b"[]"),
    "header_not_json": file(b"{x}"),
    "header_not_utf8": file(b'{"\xff":{}}'),
    "header_truncated": file(b'{"a":{"dtype":"F32"'),
    "header_tail": file(b"{}x"),
    "header_newline_tail": file(b"{}\n"),
    "header_zero_byte": file(b"{}\0}"),
    "header_two_values": file(b"{}{}"),
    "name_twice": file(
        b'{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'
    ),
    "field_twice": file(b'{"a":{"dtype":"U8","dtype":"F32","shape":[0],"data_offsets":[0,0]}}'),
    "field_unknown": file({"a": tensor(strides=[1])}, EIGHT),
    "field_missing_dtype": file(b'{"a":{"shape":[0],"data_offsets":[0,0]}}'),
    "field_missing_shape": file(b'{"a":{"dtype":"U8","data_offsets":[0,0]}}'),
    "field_missing_offsets": file(b'{"a":{"dtype":"U8","shape":[0]}}'),
    "entry_not_object": file({"a": 3}),
    "dtype_unknown": file({"a": tensor(dtype="BF32")}, EIGHT),
    "dtype_not_string": file({"a": tensor(dtype=7)}, EIGHT),
    "dtype_wrong_case": file({"a": tensor(dtype="f32")}, EIGHT),
    "shape_not_list": file(b'{"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}}', EIGHT),
    "shape_negative": file({"a": tensor(shape=(-2,))}, EIGHT),
    "shape_real": file(b'{"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}}', EIGHT),
    "shape_string": file({"a": tensor(shape=("2",))}, EIGHT),
    "shape_nested": file({"a": tensor(shape=([2],))}, EIGHT),
    "shape_over_64_bits": file(b'{"a":{"dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,8]}}', EIGHT),
    "shape_overflow": file({"a": tensor(shape=(2**32, 2**32))}, EIGHT),
    "shape_overflow_to_size": file({"a": tensor(dtype="U8", shape=(2**61, 8, 8))}, EIGHT),
    "shape_half_byte": file({"a": tensor(dtype="F4", shape=(3,), offsets=(0, 2))}, EIGHT[:2]),
    "shape_rank_65": file({"a": tensor(shape=(1,) * 64 + (2,))}, EIGHT),
    "size_not_shape": file({"a": tensor(shape=(3,))}, EIGHT),
    "offsets_one": file({"a": tensor(offsets=(0,))}, EIGHT),
    "offsets_three": file({"a": tensor(offsets=(0, 8, 8))}, EIGHT),
    "offsets_reversed": file({"a": tensor(offsets=(8, 0))}, EIGHT),
    "offsets_negative": file({"a": tensor(offsets=(-8, 0))}, EIGHT),
    "offsets_past_end": file({"a": tensor(shape=(4,), offsets=(0, 16))}, EIGHT),
    "offsets_huge": file({"a": tensor(shape=(2,), offsets=(2**64 - 9, 2**64 - 1))}, EIGHT),
    "data_truncated": file({"a": tensor()}, EIGHT[:7]),
    "data_missing": file({"a": tensor()}),
    "data_after_last": file({"a": tensor()}, EIGHT + b"x"),
    "data_without_tensor": file({}, EIGHT),
    "hole_at_start": file({"a": tensor(offsets=(4, 12))}, EIGHT + EIGHT[:4]),
    "hole_between": file({"a": tensor(), "b": tensor(offsets=(12, 20))}, EIGHT + EIGHT + EIGHT[:4]),
    "overlap": file({"a": tensor(), "b": tensor(offsets=(4, 12))}, EIGHT + EIGHT[:4]),
    "overlap_same": file({"a": tensor(), "b": tensor()}, EIGHT),
    "metadata_not_object": file({"__metadata__": "pt"}),
    "metadata_number": file({"__metadata__": {"step": 3}}),
    "metadata_nested": file({"__metadata__": {"a": {"b": {"c": "d"}}}}),
    "nesting_deep": file(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "name_with_escape": file({"\x1b[31m\nred": 3}),
}

for folder, cases in (("valid", VALID), ("malformed", MALFORMED)):
    (HERE / folder).mkdir(exist_ok=True)
    for name, content in cases.items():
        (HERE / folder / f"{name}.safetensors").write_bytes(content)
