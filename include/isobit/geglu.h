/* geglu: gelu(gate) * up, forward and backward.
 *
 *   out    = gelu(gate) up                 gelu: tanh form a (1 + tanh(sqrt(2/pi) (a + 0.044715 a^3))) / 2,
 *   d_gate = d_out up gelu'(gate)                 or erf form a (1 + erf(a / sqrt 2)) / 2
 *   d_up   = d_out gelu(gate)
 *
 * Intermediates are fp32; every output is rounded once. The bits of an element depend on the elements that it is
 * computed from, the dtype and the options, never on shape, position, layout, strides, alignment, kernel, threads or
 * device (docs/bit-contract.md): the CPU and every GPU write the same bytes. A NaN is written as 7FFFFFFF or 7FFF.
 *
 * Layouts are strides. All tensors of a call have one shape [..., I] (rank 1 to 4), dtype and device; the leading
 * dimensions of each must step evenly, so that they are rows R at one distance. Elements of a row are next to each
 * other, or the two tensors of a pair (gate with up, d_gate with d_up) alternate element by element in one buffer:
 *   separate      gate and up two buffers of any row stride
 *   stacked       x [R, 2I]: gate = x[:, :I], up = x[:, I:]: both row stride 2I, any order
 *   interleaved   x [R, I, 2]: gate = x[:, :, 0], up = x[:, :, 1]: both last stride 2, any order
 * Any width, any number of rows, any alignment of at least an element; inputs may have row stride 0.
 */
#ifndef ISOBIT_GEGLU_H_
#define ISOBIT_GEGLU_H_

#include <isobit/isobit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* There is no default: a call that names no form is refused. */
typedef int32_t isobit_gelu;
enum { ISOBIT_GELU_TANH = 1, ISOBIT_GELU_ERF = 2 };

/* out may not overlap gate or up. Start from ISOBIT_GEGLU_FORWARD_ARGS_INIT. */
typedef struct isobit_geglu_forward_args {
  uint32_t struct_size; /* sizeof(isobit_geglu_forward_args) */
  int32_t threads;      /* CPU: number of threads, at most 1024, 0 for OpenMP's default; ignored on a GPU */
  const char* kernel;   /* name of one row of the table of kernels; NULL: the first that fits */

  isobit_tensor gate; /* [..., I] bf16, fp16 or fp32 */
  isobit_tensor up;   /* [..., I] */
  isobit_tensor out;  /* [..., I], last stride 1 */

  isobit_gelu gelu;
  int32_t round_gelu; /* 1: gelu(gate) is rounded to the dtype before it is multiplied, as PyTorch's eager mode does */
} isobit_geglu_forward_args;

/* d_gate and d_up may overlap nothing else, with one exception: if in_place is 1, d_gate may be gate itself and d_up
 * may be up itself (same data and strides); the inputs are then lost. Start from ISOBIT_GEGLU_BACKWARD_ARGS_INIT. */
typedef struct isobit_geglu_backward_args {
  uint32_t struct_size; /* sizeof(isobit_geglu_backward_args) */
  int32_t threads;
  const char* kernel;

  isobit_tensor gate;   /* [..., I] bf16, fp16 or fp32 */
  isobit_tensor up;     /* [..., I] */
  isobit_tensor d_out;  /* [..., I], last stride 1 */
  isobit_tensor d_gate; /* [..., I] */
  isobit_tensor d_up;   /* [..., I] */

  isobit_gelu gelu;
  int32_t round_gelu; /* 1: gelu(gate) in d_up is rounded to the dtype first; d_gate is not affected */
  int32_t in_place;   /* 0 or 1 */
  int32_t reserved;   /* 0 */
} isobit_geglu_backward_args;

/* Everything absent or 0; gelu must be set. */
#ifdef __cplusplus
static inline isobit_geglu_forward_args isobit_geglu_forward_args_init() {
  isobit_geglu_forward_args args = {};
  args.struct_size = sizeof(isobit_geglu_forward_args);
  return args;
}
static inline isobit_geglu_backward_args isobit_geglu_backward_args_init() {
  isobit_geglu_backward_args args = {};
  args.struct_size = sizeof(isobit_geglu_backward_args);
  return args;
}
#define ISOBIT_GEGLU_FORWARD_ARGS_INIT isobit_geglu_forward_args_init()
#define ISOBIT_GEGLU_BACKWARD_ARGS_INIT isobit_geglu_backward_args_init()
#else
/* clang-format off */
#define ISOBIT_GEGLU_FORWARD_ARGS_INIT { .struct_size = sizeof(isobit_geglu_forward_args) }
#define ISOBIT_GEGLU_BACKWARD_ARGS_INIT { .struct_size = sizeof(isobit_geglu_backward_args) }
/* clang-format on */
#endif

/* Contract id whose bits every kernel of the operator produces; static string. */
ISOBIT_API const char* isobit_geglu_contract(void);

/* ISOBIT_OK if a call with these arguments would run; else the status it would return, and in `why` (size n, may be
 * NULL) the reason. Nothing is launched and no data is touched. */
ISOBIT_API isobit_status isobit_geglu_forward_supported(const isobit_geglu_forward_args* args, char* why, size_t n);
ISOBIT_API isobit_status isobit_geglu_backward_supported(const isobit_geglu_backward_args* args, char* why, size_t n);

/* No workspace, no allocation, no synchronisation; may be captured in a CUDA graph from the first call on. */
ISOBIT_API isobit_status isobit_geglu_forward(const isobit_geglu_forward_args* args, void* stream);
ISOBIT_API isobit_status isobit_geglu_backward(const isobit_geglu_backward_args* args, void* stream);

#ifdef __cplusplus
}
#endif

#endif /* ISOBIT_GEGLU_H_ */
