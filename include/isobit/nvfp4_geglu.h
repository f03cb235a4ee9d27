/* nvfp4_geglu: the first half of a gated MLP on NVFP4 matrices (isobit/nvfp4.h), with NVFP4 output.
 *
 *   gate(m, i) = sum_k x(m, k) weight(2i, k)        up(m, i) = sum_k x(m, k) weight(2i + 1, k)
 *   hidden     = gelu(gate) up  ->  NVFP4 by nvfp4_quantize's rule
 *
 * x [M, K]; weight [2I, K], rows interleaved in pairs gate 0, up 0, gate 1, up 1, ...; out [M, I]. Any M; K and I
 * positive multiples of 16. The hidden activation is rounded once, from fp32 to NVFP4: it never exists in bf16.
 * Weights stored as [gate; up] halves give wrong results without an error: interleave them first (rows of the codes and
 * of the scales alike; `isobit pack` does).
 *
 * Gate and up each have a global decode scale of their own, because checkpoints quantise them apart. out_scale is the
 * global encode scale of the output (nvfp4_quantize's global_scale); nvfp4_linear takes its reciprocal as x_scale.
 * The bits of a row depend on that row, on the weights, the scales and the form of GELU, never on M, the row's
 * position, tiles, threads or workspace (docs/bit-contract.md). A NaN in a block of 16 outputs, and any unusable global
 * scale, gives scale NaN (7F) and codes 7.
 */
#ifndef ISOBIT_NVFP4_GEGLU_H_
#define ISOBIT_NVFP4_GEGLU_H_

#include <isobit/geglu.h>
#include <isobit/nvfp4.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All tensors live on one device; outputs may overlap neither each other nor an input. Start from
 * ISOBIT_NVFP4_GEGLU_ARGS_INIT. */
typedef struct isobit_nvfp4_geglu_args {
  uint32_t struct_size; /* sizeof(isobit_nvfp4_geglu_args) */
  int32_t threads;      /* CPU: number of threads, at most 1024, 0 for OpenMP's default; ignored on a GPU */
  const char* kernel;   /* name of one row of the table of kernels; NULL: the first that fits */

  isobit_nvfp4_matrix x;         /* codes [..., K/2], rank 2 to 4; M rows, any M */
  isobit_nvfp4_matrix weight;    /* codes [2I, K/2], rows gate 0, up 0, gate 1, up 1, ... */
  isobit_nvfp4_scale x_scale;    /* decode */
  isobit_nvfp4_scale gate_scale; /* decode, of the even weight rows */
  isobit_nvfp4_scale up_scale;   /* decode, of the odd weight rows */
  isobit_nvfp4_scale out_scale;  /* encode */
  isobit_nvfp4_matrix out;       /* codes [..., I/2] with the leading dimensions of x */

  isobit_gelu gelu; /* ISOBIT_GELU_TANH or ISOBIT_GELU_ERF; there is no default */
  int32_t reserved; /* 0 */

  void* workspace; /* on the tensors' device, aligned to 256 bytes */
  size_t workspace_bytes;
} isobit_nvfp4_geglu_args;

/* Defaults: global scales 1, linear block scales, everything else absent or 0. */
#ifdef __cplusplus
static inline isobit_nvfp4_geglu_args isobit_nvfp4_geglu_args_init() {
  isobit_nvfp4_geglu_args args = {}; /* designated initialisers would ask for C++20 and warn under -Wextra */
  args.struct_size = sizeof(isobit_nvfp4_geglu_args);
  args.x_scale.value = 1.0f;
  args.gate_scale.value = 1.0f;
  args.up_scale.value = 1.0f;
  args.out_scale.value = 1.0f;
  return args;
}
#define ISOBIT_NVFP4_GEGLU_ARGS_INIT isobit_nvfp4_geglu_args_init()
#else
/* clang-format off */
#define ISOBIT_NVFP4_GEGLU_ARGS_INIT \
  { .struct_size = sizeof(isobit_nvfp4_geglu_args), .x_scale = {.value = 1.0f}, .gate_scale = {.value = 1.0f}, \
    .up_scale = {.value = 1.0f}, .out_scale = {.value = 1.0f} }
/* clang-format on */
#endif

/* Contract id that the CPU and compute capability 9.0 produce; static string. `isobit list` has that of every row. */
ISOBIT_API const char* isobit_nvfp4_geglu_contract(void);

/* Workspace in bytes: with `minimum` the rows go in small blocks, with `recommended` nothing is gained by more.
 * Pointers may be NULL. */
ISOBIT_API isobit_status isobit_nvfp4_geglu_workspace(const isobit_nvfp4_geglu_args* args, size_t* minimum,
                                                      size_t* recommended);

/* ISOBIT_OK if a call with these arguments would run; else the status it would return, and in `why` (size n, may be
 * NULL) the reason. Nothing is launched and no data is touched. */
ISOBIT_API isobit_status isobit_nvfp4_geglu_supported(const isobit_nvfp4_geglu_args* args, char* why, size_t n);

/* No allocation, no synchronisation; may be captured in a CUDA graph from the first call on. */
ISOBIT_API isobit_status isobit_nvfp4_geglu(const isobit_nvfp4_geglu_args* args, void* stream);

#ifdef __cplusplus
}
#endif

#endif /* ISOBIT_NVFP4_GEGLU_H_ */
