"""At which sizes PyTorch's bfloat16 head depends on the number of rows, and that isobit's never does, as JSON lines.

    python examples/rollout_vs_trainer/sizes.py --device cuda

128 rows go through the head in calls of 1 to 128 rows, and among 256 rows in one call. What differs is up to the
kernels that the matrix library picks for a size; nothing about it is promised, nor is it a defect of theirs.
"""

import argparse
import json

import torch
from compare import eager, ours

SIZES = ((4096, 4096), (32000, 4096), (50257, 1600), (50257, 4096), (51200, 2560), (128256, 4096), (151936, 4096),
         (151936, 8192), (262144, 2304))  # fmt: skip
CALLS, ROWS, ALL = (1, 8, 24, 64, 128), 128, 256


def in_calls(head, size, hidden, weight, target):
    return torch.cat([head(h, weight, t) for h, t in zip(hidden[:ROWS].split(size), target[:ROWS].split(size))])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sizes", type=int, default=len(SIZES), help="how many of them")
    options = parser.parse_args()
    torch.manual_seed(0)
    device = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    for vocabulary, width in SIZES[: options.sizes]:
        hidden = torch.randn(ALL, width, device=options.device).bfloat16()
        weight = (torch.randn(vocabulary, width, device=options.device) * 3 / width**0.5).bfloat16()
        target = torch.randint(vocabulary, (ALL,), device=options.device)
        with torch.no_grad():
            for name, head in (("PyTorch", eager), ("isobit", ours)):
                whole = head(hidden, weight, target)[:ROWS]
                for size in CALLS:
                    difference = (in_calls(head, size, hidden, weight, target) - whole).abs()
                    counts = {"rows_that_differ": int((difference != 0).sum()), "of": ROWS}
                    record = {"head": name, "V": vocabulary, "H": width, "rows_of_a_call": size, **counts,
                              "max_abs_difference": float(difference.max()), "device": device,
                              "torch": torch.__version__}  # fmt: skip
                    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
