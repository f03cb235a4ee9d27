"""The demo's modules are scripts beside each other, not a package; they use the binding of this tree."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "examples/gemma3"), str(ROOT / "python")]
