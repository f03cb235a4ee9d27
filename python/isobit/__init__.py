"""isobit: fused kernels whose bits never depend on batching, tiling, scheduling or sharding.

This package calls the C library through ctypes and needs NumPy only. The library is looked for in $ISOBIT_LIBRARY, the
package's folder, the build folders of a source tree, and where the system's loader looks. Submodules that need more are
imported by name and never by this one: isobit.torch, isobit.jax, isobit.transformers.
"""

from ._geglu import geglu, geglu_backward
from ._kernels import Kernel, build_info, has_cuda, kernels
from ._library import Error, InvalidArgumentError
from ._linear_logp import LinearLogp, Shard, linear_logp, linear_logp_merge, linear_logp_shard, linear_logp_validate
from ._linear_logp_backward import LinearLogpGradients, linear_logp_backward, linear_logp_save
from ._nvfp4 import Nvfp4Matrix, nvfp4_geglu, nvfp4_linear, nvfp4_quantize
from ._tensor import from_bf16, to_bf16

__version__ = "0.1.0"

__all__ = [
    "Error",
    "InvalidArgumentError",
    "Kernel",
    "LinearLogp",
    "LinearLogpGradients",
    "Nvfp4Matrix",
    "Shard",
    "build_info",
    "from_bf16",
    "geglu",
    "geglu_backward",
    "has_cuda",
    "kernels",
    "linear_logp",
    "linear_logp_backward",
    "linear_logp_merge",
    "linear_logp_save",
    "linear_logp_shard",
    "linear_logp_validate",
    "nvfp4_geglu",
    "nvfp4_linear",
    "nvfp4_quantize",
    "to_bf16",
]
