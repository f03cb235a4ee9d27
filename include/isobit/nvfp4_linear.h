/* nvfp4_linear: product of two NVFP4 matrices (isobit/nvfp4.h), as a linear layer.
 *
 *   out(m, n) = sum_k x(m, k) weight(n, k)      x [M, K], weight [N, K], out [M, N] in bf16 or fp32
 *
 * E2M1 times E4M3 is exact in bf16; the sum is the tensor cores' fp32 accumulation over groups of 16 in ascending k,
 * then it is multiplied by the product of the two global decode scales and rounded once. The bits of a row depend on
 * that row, on the weights and on the scales, never on M, the row's position, tiles, threads or workspace
 * (docs/bit-contract.md). A NaN is written as 7FFFFFFF or 7FFF; a block scale that is NaN makes the outputs that meet
 * it NaN.
 */
#ifndef ISOBIT_NVFP4_LINEAR_H_
#define ISOBIT_NVFP4_LINEAR_H_

#include <isobit/nvfp4.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All tensors live on one device; out may not overlap an input. Start from ISOBIT_NVFP4_LINEAR_ARGS_INIT. */
typedef struct isobit_nvfp4_linear_args {
  uint32_t struct_size; /* sizeof(isobit_nvfp4_linear_args) */
  int32_t threads;      /* CPU: number of threads, at most 1024, 0 for OpenMP's default; ignored on a GPU */
  const char* kernel;   /* name of one row of the table of kernels; NULL: the first that fits */

  isobit_nvfp4_matrix x;           /* codes [..., K/2], rank 2 to 4; M rows, any M */
  isobit_nvfp4_matrix weight;      /* codes [N, K/2], any N */
  isobit_nvfp4_scale x_scale;      /* decode */
  isobit_nvfp4_scale weight_scale; /* decode */
  isobit_tensor out;               /* [..., N] bf16 or fp32 with the leading dimensions of x, last stride 1 */

  void* workspace; /* on the tensors' device, aligned to 256 bytes */
  size_t workspace_bytes;
} isobit_nvfp4_linear_args;

/* Defaults: global scales 1, linear block scales, everything else absent or 0. */
#ifdef __cplusplus
static inline isobit_nvfp4_linear_args isobit_nvfp4_linear_args_init() {
  isobit_nvfp4_linear_args args = {}; /* designated initialisers would ask for C++20 and warn under -Wextra */
  args.struct_size = sizeof(isobit_nvfp4_linear_args);
  args.x_scale.value = 1.0f;
  args.weight_scale.value = 1.0f;
  return args;
}
#define ISOBIT_NVFP4_LINEAR_ARGS_INIT isobit_nvfp4_linear_args_init()
#else
/* clang-format off */
#define ISOBIT_NVFP4_LINEAR_ARGS_INIT \
  { .struct_size = sizeof(isobit_nvfp4_linear_args), .x_scale = {.value = 1.0f}, .weight_scale = {.value = 1.0f} }
/* clang-format on */
#endif

/* Contract id that the CPU and compute capability 9.0 produce; static string. `isobit list` has that of every row. */
ISOBIT_API const char* isobit_nvfp4_linear_contract(void);

/* Workspace in bytes: with `minimum` the rows go in small blocks, with `recommended` nothing is gained by more.
 * Pointers may be NULL. */
ISOBIT_API isobit_status isobit_nvfp4_linear_workspace(const isobit_nvfp4_linear_args* args, size_t* minimum,
                                                       size_t* recommended);

/* ISOBIT_OK if a call with these arguments would run; else the status it would return, and in `why` (size n, may be
 * NULL) the reason. Nothing is launched and no data is touched. */
ISOBIT_API isobit_status isobit_nvfp4_linear_supported(const isobit_nvfp4_linear_args* args, char* why, size_t n);

/* No allocation, no synchronisation; may be captured in a CUDA graph from the first call on. */
ISOBIT_API isobit_status isobit_nvfp4_linear(const isobit_nvfp4_linear_args* args, void* stream);

#ifdef __cplusplus
}
#endif

#endif /* ISOBIT_NVFP4_LINEAR_H_ */
