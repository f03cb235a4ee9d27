"""The demo's modules are scripts beside each other, not a package."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples/gemma3"))
