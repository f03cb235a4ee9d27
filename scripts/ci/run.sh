#!/bin/sh
# Brings Python if it is missing, then runs the stages (all of them, or those named).
set -eu
cd "$(dirname "$0")/../.."
if ! python3 -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
  if [ "$(id -u)" != 0 ]; then
    echo "make test needs python3 (3.10 or newer) with venv; please install it" >&2
    exit 1
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-venv
fi
exec python3 -B scripts/ci/run.py "$@"
