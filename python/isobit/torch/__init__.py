"""isobit's operators on PyTorch tensors: torch.ops.isobit.* and the functions of this module.

Calls go through TVM-FFI where the package apache-tvm-ffi is installed, else through ctypes; nothing links to libtorch,
so one library serves every PyTorch (written for 2.6 and newer, tested with 2.11 and 2.15). A call runs on its tensors'
device, on the stream that is current there, with memory out of PyTorch's allocator; it never synchronises and may be
captured in a CUDA graph. ROCm builds of PyTorch get the CPU backend only.
"""

from ._call import set_workspace_limit
from ._functions import linear_logp, linear_logp_validate
from ._geglu_functions import geglu, geglu_packed
from ._nvfp4 import Matrix as Nvfp4Matrix
from ._nvfp4 import nvfp4_geglu, nvfp4_linear, nvfp4_quantize
from ._nvfp4_mlp import Nvfp4Mlp, nvfp4_mlp
from ._packed import PackedMlps

__all__ = [
    "Nvfp4Matrix",
    "Nvfp4Mlp",
    "PackedMlps",
    "geglu",
    "geglu_packed",
    "linear_logp",
    "linear_logp_validate",
    "nvfp4_geglu",
    "nvfp4_linear",
    "nvfp4_mlp",
    "nvfp4_quantize",
    "set_workspace_limit",
]
