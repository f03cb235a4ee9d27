/* nvfp4_quantize: bf16, fp16 or fp32 [M, K] -> packed E2M1 codes and E4M3 block scales (isobit/nvfp4.h).
 *
 *   scale(r, b) = E4M3(amax(r, b) * g / 6)                       amax over the block's 16 columns, g global encode
 * scale code(r, k)  = E2M1(x(r, k) * g / scale(r, k / 16))           both round to nearest even and saturate
 *
 * docs/bit-contract.md has the rule operation by operation. IEEE arithmetic only: the CPU and every GPU write the same
 * bytes, and the bytes of a block depend on that block, g and nothing else.
 *
 * Special blocks
 *  - all zero, or so small that the scale rounds to 0 (amax * g <= 6 * 2^-10): scale 0, codes +-0.
 *  - amax * g > 2688: the scale saturates at 448 and large elements at +-6 (choose g = 2688 / amax of the tensor).
 *  - an infinity: scale 448, code +-6; the block's finite elements follow the rule.
 *  - a NaN, or a device global scale that is not positive and finite: scale NaN (7F), codes +6 (7).
 */
#ifndef ISOBIT_NVFP4_QUANTIZE_H_
#define ISOBIT_NVFP4_QUANTIZE_H_

#include <isobit/nvfp4.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Outputs may overlap neither each other nor an input. Start from ISOBIT_NVFP4_QUANTIZE_ARGS_INIT. */
typedef struct isobit_nvfp4_quantize_args {
  uint32_t struct_size; /* sizeof(isobit_nvfp4_quantize_args) */
  int32_t threads;      /* CPU: number of threads, at most 1024, 0 for OpenMP's default; ignored on a GPU */
  const char* kernel;   /* name of one row of the table of kernels; NULL: the first that fits */

  isobit_tensor x;                 /* [..., K] bf16, fp16 or fp32, rank 2 to 4, last stride 1, any row stride */
  isobit_nvfp4_scale global_scale; /* encode */
  isobit_nvfp4_matrix out;         /* codes [..., K/2] with the leading dimensions of x */
} isobit_nvfp4_quantize_args;

/* Defaults: global scale 1, linear scales, everything else absent or 0. */
#ifdef __cplusplus
static inline isobit_nvfp4_quantize_args isobit_nvfp4_quantize_args_init() {
  isobit_nvfp4_quantize_args args = {}; /* designated initialisers would ask for C++20 and warn under -Wextra */
  args.struct_size = sizeof(isobit_nvfp4_quantize_args);
  args.global_scale.value = 1.0f;
  return args;
}
#define ISOBIT_NVFP4_QUANTIZE_ARGS_INIT isobit_nvfp4_quantize_args_init()
#else
/* clang-format off */
#define ISOBIT_NVFP4_QUANTIZE_ARGS_INIT \
  { .struct_size = sizeof(isobit_nvfp4_quantize_args), .global_scale = {.value = 1.0f} }
/* clang-format on */
#endif

/* Contract id whose bits every kernel of the operator produces; static string. */
ISOBIT_API const char* isobit_nvfp4_quantize_contract(void);

/* ISOBIT_OK if a call with these arguments would run; else the status it would return, and in `why` (size n, may be
 * NULL) the reason. Nothing is launched and no data is touched. */
ISOBIT_API isobit_status isobit_nvfp4_quantize_supported(const isobit_nvfp4_quantize_args* args, char* why, size_t n);

/* No workspace, no allocation, no synchronisation; may be captured in a CUDA graph from the first call on. */
ISOBIT_API isobit_status isobit_nvfp4_quantize(const isobit_nvfp4_quantize_args* args, void* stream);

#ifdef __cplusplus
}
#endif

#endif /* ISOBIT_NVFP4_QUANTIZE_H_ */
