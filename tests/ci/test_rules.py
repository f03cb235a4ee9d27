"""Every house rule passes on a clean tree and finds a planted fault."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts" / "ci"))
import rules

ROOM = [*(f"src/ops/op/{name}" for name in rules.ROOM_FILES), "src/ops/op/cpu/a.cpp", "src/ops/op/test/a.cpp"]
LONG_FUNCTION = "void f(int x) {\n" + "  x += 1;\n" * 80 + "}\n"
LONG_METHOD = "class A {\n" + LONG_FUNCTION.replace("  x", "    x").replace("void", "  void").replace(
    "}\n", "  }\n};\n"
)
FAULTS = [
    (rules.asm_only_in_device_ptx, {"src/core/a.cpp": 'void f() { asm volatile("nop"); }\n'}),
    (rules.asm_only_in_device_ptx, {"src/ops/op/sm90/kernel.cuh": '  asm("nop;");\n'}),
    (rules.file_length, {"src/core/a.cpp": "\n" * 301}),
    (rules.file_length, {"src/ops/op/sm90/kernel.cuh": "\n" * 501}),
    (rules.function_length, {"src/core/a.cpp": LONG_FUNCTION}),
    (rules.function_length, {"src/core/a.h": LONG_METHOD}),
    (rules.function_length, {"src/core/a.cpp": LONG_FUNCTION.replace("void f(int x) {", "A::A(int x)\n    : x_(x) {")}),
    (rules.room_shape, {name: "" for name in ROOM if "reference.cpp" not in name}),
    (rules.room_shape, {name: "" for name in ROOM if "/test/" not in name}),
    (rules.room_shape, {**dict.fromkeys(ROOM, ""), "src/ops/op/sm90/kernel.cuh": "", "src/ops/op/sm90/launch.h": ""}),
    (rules.room_shape, {**dict.fromkeys(ROOM, ""), "src/ops/op/cuda/kernel.cuh": "", "src/ops/op/cuda/launch.h": ""}),
    (rules.room_runs_in_the_interpreter, {"src/ops/op/cuda/launch.cu": "", "src/ops/op/test/a.cpp": "int main() {}\n"}),
    (
        rules.rooms_include_one_way,
        {
            "src/ptx/engine/a.h": '#include "ptx/values/b.h"\n',
            "src/ptx/values/b.h": '#include "ptx/memory/c.h"\n',
            "src/ptx/memory/c.h": '#include "ptx/values/b.h"\n#include "ptx/syntax/d.h"\n',
        },
    ),
    (rules.instructions_stand_alone, {"src/device/ptx/a.cuh": '#include "numerics/bf16.h"\n'}),
    (rules.device_code_suffix, {"src/core/a.cu": "int x;\n"}),
    (rules.words, {"README.md": "see /" + "work/elsewhere for more\n"}),
    (rules.words, {"a.md": "fixed in issue 12\n"}),
    (rules.words, {"src/a.cpp": "// fixed (#12)\n"}),
    (rules.words, {"src/a.cpp": "// TODO: later\n"}),
    (rules.words, {"a.txt": "from https://pypi.example-host.internal/simple\n"}),
    (rules.public_headers_name_no_private_file, {"include/isobit/a.h": '#include "core/status.h"\n'}),
    (rules.public_headers_name_no_private_file, {"include/isobit/a.h": "#include <cuda/std/bit>\n"}),
]
CLEAN = {
    **dict.fromkeys(ROOM, ""),
    "src/device/ptx/a.cuh": '#include "device/ptx/b.cuh"\n__device__ void f() { asm volatile("nop;"); }\n',
    "src/core/a.cpp": "// asm (spelled in a comment) is fine\nvoid f(int x) {\n" + "  x += 1;\n" * 78 + "}\n",
    "src/ops/op/sm90/kernel.cuh": "__global__ void f();\n" + "\n" * 499,
    "src/ops/op/sm90/launch.h": "",
    "src/ops/op/test/emulated_test.cpp": '#include "ptx/runtime/emulation.h"\n',
    "src/ops/op/sm90/launch.cu": "f<<<1, 1>>>();\n",
    "include/isobit/a.h": "#include <isobit/isobit.h>\n#include <stdint.h>\n",
    "README.md": "colour #fff, heading\n# 1. One\nhttps://github.com/a/b\n",
}


def make_tree(root: Path, files: dict[str, str]) -> None:
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_a_clean_tree_passes(rule, tmp_path):
    make_tree(tmp_path, CLEAN)
    assert rule(tmp_path) == []


@pytest.mark.parametrize(("rule", "files"), FAULTS, ids=lambda value: getattr(value, "__name__", ""))
def test_a_planted_fault_is_found(rule, files, tmp_path):
    make_tree(tmp_path, files)
    assert len(rule(tmp_path)) == 1


def test_every_rule_has_a_planted_fault():
    assert {rule for rule, _ in FAULTS} == set(rules.RULES)
