"""The command line as a user meets it: exit codes, what goes to stdout, and comparisons with known answers."""

import json
import math
import os
import subprocess

import numpy as np
import pytest

CLI = os.environ["ISOBIT_CLI"]


def isobit(*words):
    return subprocess.run(
        [CLI, *map(str, words)], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


def test_version_names_the_build():
    assert isobit("--version").stdout.startswith("isobit 0.1.0, ")


@pytest.mark.parametrize(
    "command", ["info", "list", "check", "bench", "compare", "pack", "emulate", "score", "selftest"]
)
def test_help_has_no_escape_codes(command):
    done = isobit(command, "--help")
    assert done.returncode == 0
    assert "\033" not in done.stdout


def test_info_in_both_forms():
    text = isobit("info").stdout
    info = json.loads(isobit("info", "--json").stdout)
    assert info["build"] in text
    assert {kernel["op"] for kernel in info["kernels"]} == {json.loads(line)["op"] for line in lines("list", "--json")}


def lines(*words):
    return isobit(*words).stdout.splitlines()


def test_list_says_why_not_exactly_for_unusable_kernels():
    for row in map(json.loads, lines("list", "--json")):
        assert row["usable"] == (row["reason"] == "")


def write(path, values):
    np.save(path, values)
    return path


def test_equal_files_pass(tmp_path):
    a = write(tmp_path / "a.npy", np.array([-1.5, -np.inf, np.nan], np.float32))
    assert isobit("compare", a, a).returncode == 0


def test_compare_finds_the_first_row_and_the_largest_difference(tmp_path):
    first = np.full((3, 2), -2.0, np.float32)
    second = first.copy()
    second[1, 1] -= 0.5
    second[2, 0] += 0.25
    done = isobit("compare", write(tmp_path / "a.npy", first), write(tmp_path / "b.npy", second), "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert (found["first_row"], found["differing"], found["max_abs"]) == (1, 2, 0.5)
    k3 = (math.exp(-0.5) - 1 + 0.5 + math.exp(0.25) - 1 - 0.25) / 6
    assert math.isclose(found["k3"], k3, rel_tol=1e-12)


def test_compare_takes_one_ulp_as_a_difference_unless_told_otherwise(tmp_path):
    first = np.array([-1.0], np.float32)
    a = write(tmp_path / "a.npy", first)
    b = write(tmp_path / "b.npy", np.nextafter(first, np.float32(0)))
    assert isobit("compare", a, b).returncode == 1
    assert isobit("compare", a, b, "--tolerance", "1e-6").returncode == 0


def test_a_nan_on_one_side_fails_at_any_tolerance(tmp_path):
    a = write(tmp_path / "a.npy", np.array([-1.0, -1.0], np.float32))
    b = write(tmp_path / "b.npy", np.array([-1.0, np.nan], np.float32))
    assert isobit("compare", a, b, "--tolerance", "10").returncode == 1


def test_text_and_npy_compare(tmp_path):
    text = tmp_path / "a.txt"
    text.write_text("-1.5 -2\n-3 -4\n")
    assert isobit("compare", text, write(tmp_path / "b.npy", np.array([[-1.5, -2], [-3, -4]]))).returncode == 0


def safetensors(path, **tensors):
    """Writes a file; a tensor is (dtype, array), the array holding its bits."""
    header, data = {}, b""
    for name, (dtype, array) in tensors.items():
        ends = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": ends}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def test_safetensors_compare_by_bytes(tmp_path):
    logp = np.array([-1.5, -0.0, -3.0], np.float32)
    bits = np.array([[1, 2], [3, 4]], np.uint16)
    a = safetensors(tmp_path / "a.safetensors", logp=("F32", logp), w=("BF16", bits))
    same = safetensors(tmp_path / "b.safetensors", w=("BF16", bits), logp=("F32", logp))  # another order of the bytes
    assert isobit("compare", a, same).returncode == 0
    nearly = logp.copy()
    nearly[2] = np.nextafter(nearly[2], np.float32(-4))
    other = safetensors(tmp_path / "c.safetensors", logp=("F32", nearly), w=("BF16", bits))
    done = isobit("compare", a, other, "--json")
    assert done.returncode == 1
    found = {line["tensor"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert (found["logp"]["differing_bytes"], found["logp"]["first_element"]) == (1, 2)
    assert found["logp"]["max_abs"] == float(logp[2]) - float(nearly[2])
    assert found["w"]["passed"]
    assert isobit("compare", a, other, "--tolerance", "1e-6").returncode == 0
    changed = safetensors(tmp_path / "d.safetensors", logp=("F32", logp), w=("BF16", bits + np.uint16(1)))
    assert isobit("compare", a, changed, "--tolerance", "1").returncode == 1  # a tolerance is for float32 alone


def test_safetensors_that_do_not_match_are_a_usage_error(tmp_path):
    a = safetensors(tmp_path / "a.safetensors", x=("F32", np.zeros(2, np.float32)))
    for other in ({"y": ("F32", np.zeros(2, np.float32))}, {"x": ("F32", np.zeros((1, 2), np.float32))},
                  {"x": ("I32", np.zeros(2, np.int32))}, {}):  # fmt: skip
        assert isobit("compare", a, safetensors(tmp_path / "b.safetensors", **other)).returncode == 2
    (tmp_path / "cut.safetensors").write_bytes(a.read_bytes()[:-1])
    assert isobit("compare", a, tmp_path / "cut.safetensors").returncode == 2
    assert isobit("compare", a, write(tmp_path / "c.npy", np.zeros(2, np.float32))).returncode == 2


def npy_header(fields):
    text = ("{" + fields + "}").encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "content",
    [
        b"one two\n",
        b"1 2\n3\n",
        b"\x93NUMPY\x01\x00",
        b'{"op": 1}\n',
        b'{"median_us": 1}\n',
        b"",
        b"\n",
        b'{"op": "a", "kernel": "b", "dtype": "c", "shape": {}, "median_us": "1"}\n',
        npy_header("'descr':"),
        npy_header("'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)"),
        npy_header(f"'descr': '<f4', 'fortran_order': False, 'shape': ({'9' * 30},)"),
        npy_header("'descr': '<f4', 'fortran_order': False, 'shape': (0, 4)"),
    ],
)
def test_a_file_that_is_neither_kind_is_a_usage_error(tmp_path, content):
    bad = tmp_path / "bad"
    bad.write_bytes(content)
    done = isobit("compare", bad, bad)
    assert (done.returncode, done.stdout) == (2, "")


def result_line(median, spread=1.0, **fields):
    line = {"op": "linear_logp_forward", "kernel": "cpu", "shape": {"N": 1}, "dtype": "bfloat16", "median_us": median,
            "p20_us": median - spread, "p80_us": median + spread, **fields}  # fmt: skip
    return json.dumps(line) + "\n"


@pytest.mark.parametrize(
    ("second", "verdict", "code"), [(100.5, "same", 0), (50.0, "faster", 0), (104.0, "slower", 0), (120.0, "slower", 1)]
)
def test_results_are_compared_by_interval(tmp_path, second, verdict, code):
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    a.write_text(result_line(100.0))
    b.write_text(result_line(second))
    done = isobit("compare", a, b, "--json", "--max-slower", "5")
    assert json.loads(done.stdout)["verdict"] == verdict
    assert done.returncode == code


def test_results_of_other_devices_are_not_compared(tmp_path):
    a, b = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    a.write_text(result_line(100.0, gpu="A"))
    b.write_text(result_line(100.0, gpu="B"))
    assert isobit("compare", a, b).returncode == 2


BENCH_FIELDS = {"op", "kernel", "shape", "dtype", "gpu", "samples_us", "median_us", "bytes", "flops", "peer",
                "peer_version", "peer_median_us", "ratio", "peak_bytes", "command", "date", "warm"}  # fmt: skip


CASES = [
    ("linear_logp_forward", "N=2,3 H=32 V=200", ["N", "H", "V"]),
    ("geglu_backward", "rows=2,3 cols=17", ["rows", "cols"]),
]


@pytest.mark.parametrize(("op", "shape", "letters"), CASES)
def test_bench_prints_a_json_line_a_case_with_a_command_that_repeats_it(op, shape, letters):
    words = ("bench", op, "--kernel", "cpu", "--shape", *shape.split(), "--samples", 3, "--warmup", 1)
    rows = [json.loads(line) for line in lines(*words)]
    assert len(rows) == 2
    for row in rows:
        assert row.keys() >= BENCH_FIELDS
        assert list(row["shape"]) == letters
        assert len(row["samples_us"]) == 3
        assert min(row["samples_us"]) <= row["median_us"] <= max(row["samples_us"])
    again = [json.loads(line) for line in lines(*rows[0]["command"].split()[1:])]
    assert [row["shape"] for row in again] == [rows[0]["shape"]]
    assert again[0]["command"] == rows[0]["command"]


def test_bench_of_a_kernel_that_is_not_here_is_exit_code_77():
    unusable = [row for row in map(json.loads, lines("list", "--json")) if not row["usable"]]
    for row in unusable:
        name = {"linear_logp": "linear_logp_forward", "geglu": "geglu_forward"}.get(row["op"])
        if name is not None:
            assert isobit("bench", name, "--kernel", row["kernel"]).returncode == 77


@pytest.mark.parametrize(
    "op", ["linear_logp", "linear_logp_backward", "geglu", "nvfp4_geglu", "nvfp4_linear", "nvfp4_quantize"]
)
def test_check_passes_and_a_planted_fault_fails_it(op):
    words = ("check", op, "--kernel", "cpu", "--quick", "--json")
    for extra in ((), ("--invariance",)):
        done = isobit(*words, *extra)
        assert done.returncode == 0, done.stderr
        assert all(json.loads(line)["passed"] for line in done.stdout.splitlines())
        spoilt = isobit(*words, *extra, "--plant-fault")
        assert spoilt.returncode == 1
        assert not all(json.loads(line)["passed"] for line in spoilt.stdout.splitlines())


SCALE = """.version 8.5
.target sm_90
.address_size 64
.visible .entry scale(.param .u64 data, .param .f32 factor, .param .u32 count) {
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .reg .b64 %d<4>;
  ld.param.u64 %d1, [data];
  ld.param.f32 %f1, [factor];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 ret;
  mul.wide.u32 %d2, %r2, 4;
  add.s64 %d3, %d1, %d2;
  ld.global.f32 %f2, [%d3];
  mul.rn.f32 %f3, %f2, %f1;
  st.global.f32 [%d3], %f3;
  ret;
}
"""


def emulate_scale(folder, count, *options):
    (folder / "scale.ptx").write_text(SCALE)
    np.arange(40, dtype=np.float32).tofile(folder / "data.bin")
    data = f"in:{folder / 'data.bin'}={folder / 'result.bin'}"
    return isobit("emulate", folder / "scale.ptx", "--block", 64, *options, data, "f32:1.5", f"u32:{count}")


@pytest.mark.parametrize("schedule", ["eager", "lazy", "random"])
def test_emulate_runs_a_kernel_with_arguments_from_files(schedule, tmp_path):
    done = emulate_scale(tmp_path, 40, "--schedule", schedule)
    assert (done.returncode, done.stdout) == (0, "")
    np.testing.assert_array_equal(np.fromfile(tmp_path / "result.bin", np.float32), 1.5 * np.arange(40))


def test_emulate_reports_an_access_past_the_end(tmp_path):
    done = emulate_scale(tmp_path, 41)
    assert done.returncode == 1
    assert done.stdout.startswith("out-of-bounds: line 17 [ld.global.f32 %f2, [%d3]]")
    finding = json.loads(emulate_scale(tmp_path, 41, "--json").stdout)
    assert (finding["kind"], finding["line"], finding["warp"]) == ("out-of-bounds", 17, 1)


def test_emulate_refuses_what_it_does_not_know(tmp_path):
    (tmp_path / "bad.ptx").write_text(SCALE.replace("mul.rn.f32", "mul.rn.magic.f32"))
    done = isobit("emulate", tmp_path / "bad.ptx")
    assert (done.returncode, done.stdout) == (1, "")
    assert "bad.ptx:18: unknown modifier .magic" in done.stderr
