"""Every test runs on the CPU and, where there is one, on a CUDA device.

Not collected by the NumPy suite: PyTorch is optional, and its absence fails these tests rather than skipping them.
"""

import numpy as np
import pytest
import torch

DEVICES = ["cpu"] + ["cuda"] * torch.cuda.is_available()
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.fixture(params=DEVICES)
def device(request):
    return request.param


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(20261130)


def as_bits(tensor: torch.Tensor) -> np.ndarray:
    """The bytes of a tensor as NumPy's, bfloat16 as uint16."""
    tensor = tensor.detach().cpu().contiguous()
    return (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy()


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and as_bits(a).tobytes() == as_bits(b).tobytes()
