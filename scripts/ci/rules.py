"""House rules that a script can check. Each takes the root of a tree and returns one line per problem.

tests/ci/test_rules.py plants a fault for every rule and sees it found.
"""

from __future__ import annotations

import re
from pathlib import Path

from common import tracked_files

SOURCE_SUFFIXES = (".h", ".hpp", ".cpp", ".c", ".cu", ".cuh")
SCRIPT_SUFFIXES = (".py", ".sh", ".cmake")
MAX_LINES = 300
MAX_KERNEL_LINES = 500
MAX_FUNCTION_LINES = 80


def _read(root: Path, path: Path) -> str:
    return (root / path).read_text(errors="replace")


def _sources(root: Path) -> list[Path]:
    return [path for path in tracked_files(root) if path.suffix in SOURCE_SUFFIXES]


def asm_only_in_device_ptx(root: Path) -> list[str]:
    """Inline assembly stands under src/device/ptx and nowhere else."""
    pattern = re.compile(r"^(?!\s*(//|\*)).*\b(__)?asm(__)?\s*(volatile|goto|\()", re.MULTILINE)
    home = Path("src/device/ptx")
    return [
        f"{path}:{_read(root, path)[: found.start()].count(chr(10)) + 1}: asm outside {home}"
        for path in _sources(root)
        if not path.is_relative_to(home)
        for found in pattern.finditer(_read(root, path))
    ]


def file_length(root: Path) -> list[str]:
    """kernel.cuh has at most 500 lines, every other source and script 300."""
    problems = []
    for path in tracked_files(root):
        if path.suffix not in SOURCE_SUFFIXES + SCRIPT_SUFFIXES:
            continue
        limit = MAX_KERNEL_LINES if path.name == "kernel.cuh" else MAX_LINES
        lines = _read(root, path).count("\n")
        if lines > limit:
            problems.append(f"{path}: {lines} lines, expected at most {limit}")
    return problems


_FUNCTION = re.compile(
    r"^(?P<indent> *)(?!namespace|class|struct|enum|union|extern|if|for|while|switch|else|do|try|catch|return)"
    r"[A-Za-z_~:\[\]<>*&,\w (.=]*\)[^;=]*\{$"
)


def function_length(root: Path) -> list[str]:
    """A function has at most 80 lines. Relies on the tree's formatting: the closing brace has the opening's indent."""
    problems = []
    for path in _sources(root):
        lines = _read(root, path).splitlines()
        for number, line in enumerate(lines):
            found = _FUNCTION.match(line)
            if found is None:
                continue
            indent = found.group("indent")
            if line.lstrip().startswith(":"):  # a constructor's initialisers stand four to the right of it
                indent = indent[4:]
            closing = indent + "}"
            end = next((i for i in range(number + 1, len(lines)) if lines[i].startswith(closing)), number)
            if end - number + 1 > MAX_FUNCTION_LINES:
                problems.append(f"{path}:{number + 1}: function of {end - number + 1} lines")
    return problems


ROOM_FILES = ("README.md", "contract.h", "contract.cpp", "reference.h", "reference.cpp", "dispatch.cpp")
ROOM_FOLDERS = ("cpu", "test")
ARCH_FILES = ("kernel.cuh", "launch.h", "launch.cu")
SHARED_ARCH_FILES = ("launch.h", "launch.cu")  # cuda/ beside an sm folder holds what the architectures share
ARCH_FOLDER = re.compile(r"^(cuda|sm\d+)$")


def room_shape(root: Path) -> list[str]:
    """Every operator's folder holds the same files, and its architecture folders too."""
    rooms: dict[str, set[Path]] = {}
    home = Path("src/ops")
    for path in tracked_files(root):
        if path.is_relative_to(home) and len(path.parts) > 3:
            rooms.setdefault(path.parts[2], set()).add(Path(*path.parts[3:]))
    problems = []
    for room, files in sorted(rooms.items()):
        folders = {path.parts[0] for path in files if len(path.parts) > 1}
        problems += [f"src/ops/{room}: {name} is missing" for name in ROOM_FILES if Path(name) not in files]
        problems += [f"src/ops/{room}: {name}/ is missing" for name in ROOM_FOLDERS if name not in folders]
        archs = sorted(filter(ARCH_FOLDER.match, folders))
        for folder in archs:
            wanted = SHARED_ARCH_FILES if folder == "cuda" and len(archs) > 1 else ARCH_FILES
            missing = [name for name in wanted if Path(folder, name) not in files]
            problems += [f"src/ops/{room}/{folder}: {name} is missing" for name in missing]
    return problems


INTERPRETER_HEADERS = ("ptx/runtime/emulation.h", "nvfp4/test/emulated.h")


def room_runs_in_the_interpreter(root: Path) -> list[str]:
    """A room with kernels has a test that runs them without a GPU: one that includes one of INTERPRETER_HEADERS."""
    rooms: dict[str, bool] = {}
    for path in tracked_files(root):
        if not path.is_relative_to(Path("src/ops")) or len(path.parts) < 5:
            continue
        room, folder = path.parts[2:4]
        if ARCH_FOLDER.match(folder):
            rooms.setdefault(room, False)
        elif folder == "test" and any(header in _read(root, path) for header in INTERPRETER_HEADERS):
            rooms[room] = True
    return [
        f"src/ops/{room}: no test runs its kernels in the interpreter"
        for room, runs in sorted(rooms.items())
        if not runs
    ]


LAYERED = Path("src/ptx")


def rooms_include_one_way(root: Path) -> list[str]:
    """The rooms of the interpreter include one another in one direction: no room reaches itself through others."""
    reached: dict[str, set[str]] = {}
    for path in _sources(root):
        if not path.is_relative_to(LAYERED) or len(path.parts) < 4 or path.parts[2] == "test":
            continue
        found = re.findall(rf'#include "{LAYERED.name}/(\w+)/', _read(root, path))
        reached.setdefault(path.parts[2], set()).update(name for name in found if name != path.parts[2])
    while any(not reached.get(b, set()) <= near for near in reached.values() for b in near):
        for near in reached.values():
            near.update(*(reached.get(b, set()) for b in near))
    circular = [room for room in sorted(reached) if room in reached[room]]
    return [f"{LAYERED}: these rooms include one another in a circle: {', '.join(circular)}"] if circular else []


def instructions_stand_alone(root: Path) -> list[str]:
    """src/device/ptx includes itself and src/core alone: src/numerics and the rest of src/device stand on it."""
    home = Path("src/device/ptx")
    return [
        f"{path}: includes {name}"
        for path in _sources(root)
        if path.is_relative_to(home)
        for name in re.findall(r'^#include "([^"]+)"', _read(root, path), re.MULTILINE)
        if not name.startswith(("device/ptx/", "core/"))
    ]


def device_code_suffix(root: Path) -> list[str]:
    """.cu and .cuh are for files with device code, or with kernels that they include."""
    pattern = re.compile(r"__(global|device|shared|constant)__|__CUDA_ARCH__|<<<|ISOBIT_HD|\basm\b|#include .*\.cuh\"")
    cuda = [path for path in _sources(root) if path.suffix in (".cu", ".cuh")]
    return [f"{path}: no device code in it" for path in cuda if not pattern.search(_read(root, path))]


# The project speaks of itself alone: no place on a machine, no host of a registry, no number of a ticket.
_WORDS = [
    (re.compile(r"(?<![\w.{}\"$/])/(work|farm|root|home|mnt)/"), "a path of one machine"),
    (re.compile(r"https?://(?!(www\.)?(github\.com|docs\.nvidia\.com|arxiv\.org|www\.apache\.org|example\.))[\w.-]*"
                r"(pypi|npm|registry|mirror|artifactory|proxy|nexus)"), "a registry's host"),
    (re.compile(r"\b(issue|ticket|task|PR)s?\s+#?\d+\b|\(#\d+\)|(?<![&\w])#\d{1,5}\b(?![\w.])"), "a ticket's number"),
    (re.compile(r"\b(TODO|FIXME|XXX|HACK)\b"), "unfinished work"),
]  # fmt: skip
_WORDS_EXEMPT = ("scripts/ci/rules.py", "tests/ci/test_rules.py", "LICENSE")
_TEXT_SUFFIXES = (*SOURCE_SUFFIXES, *SCRIPT_SUFFIXES, ".md", ".txt", ".json", ".yaml", ".toml", ".in", "")


def words(root: Path) -> list[str]:
    """No machine paths, registry hosts, ticket numbers or unfinished work in text files."""
    problems = []
    for path in tracked_files(root):
        if path.suffix not in _TEXT_SUFFIXES or str(path) in _WORDS_EXEMPT:
            continue
        for number, line in enumerate(_read(root, path).splitlines(), 1):
            problems += [f"{path}:{number}: {what}" for pattern, what in _WORDS if pattern.search(line)]
    return problems


def public_headers_name_no_private_file(root: Path) -> list[str]:
    """include/isobit includes only itself and the standard library."""
    problems = []
    for path in _sources(root):
        if not path.is_relative_to("include"):
            continue
        for name in re.findall(r'^#include ([<"][^>"]+[>"])', _read(root, path), re.MULTILINE):
            if name.startswith('"') or ("/" in name and not name.startswith("<isobit/")):
                problems.append(f"{path}: includes {name}")
    return problems


RULES = (
    asm_only_in_device_ptx,
    file_length,
    function_length,
    room_shape,
    room_runs_in_the_interpreter,
    rooms_include_one_way,
    instructions_stand_alone,
    device_code_suffix,
    words,
    public_headers_name_no_private_file,
)
