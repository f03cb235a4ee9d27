/* linear_logp: log-probabilities of tokens straight from hidden states and the LM head, never storing [N, V].
 *
 *   z[n,v]  = softcap(sum_k hidden[n,k] weight[v,k] + bias[v]) / temperature[n]     softcap(t) = c tanh(t / c)
 *   lse[n]  = log sum_v exp z[n,v]
 *   logp    = z[n, target] - lse[n]            entropy[n] = lse[n] - sum_v p[n,v] z[n,v]
 *   rank    = number of ids whose logit is greater than the target's, equal logits counted if their id is lower
 *
 * N rows (tokens), H hidden size, V vocabulary size, K target ids per row, T ids of the top list.
 * The bits of a row's outputs depend on that row, on weight and bias, on the options and on the contract id
 * (docs/bit-contract.md), never on N, the row's position, its neighbours, chunks, strides, shards, threads or device.
 *
 * Special rows
 *  - target == ignore_index: logp, rank, target_logit +0. A row whose K targets all are: every output +0, the top list
 *    too, and its hidden state is never used.
 *  - target outside [0, V): logp and target_logit NaN, rank -1; the row's lse and entropy are NaN and its top list
 *    is -1 and NaN. The row's other targets are not affected.
 *  - a temperature that is <= 0 or NaN: the row's outputs NaN, rank and top_id -1.
 *  - a logit that is NaN or +inf: likewise, but target_logit is the target's own.
 *  - all logits -inf: as before, and lse -inf.
 *  - every NaN written is 0x7FFFFFFF.
 */
#ifndef ISOBIT_LINEAR_LOGP_H_
#define ISOBIT_LINEAR_LOGP_H_

#include <isobit/isobit.h>

#ifdef __cplusplus
extern "C" {
#endif

/* All tensors live on one device. Outputs, workspace and states may not overlap each other or any input, judged by
 * their first and last byte. N may be 0; H, K and V may not; H <= 2^24, K <= 64, N and V < 2^31. Start from
 * ISOBIT_LINEAR_LOGP_ARGS_INIT. */
typedef struct isobit_linear_logp_args {
  uint32_t struct_size; /* sizeof(isobit_linear_logp_args) */
  int32_t threads;      /* CPU: number of threads, at most 1024, 0 for OpenMP's default; ignored on a GPU */
  const char* kernel;   /* name of one row of the table of kernels; NULL: the first that fits */

  isobit_tensor hidden; /* [N, H] bf16 or fp16, stride[1] == 1, any stride[0] >= 0 */
  isobit_tensor weight; /* [Vw, H], dtype of hidden, stride[1] == 1, any stride[0] >= H; row i is id first_id + i */
  isobit_tensor bias;   /* [Vw] bf16, fp16 or fp32, any stride; or absent */
  isobit_tensor target; /* [N] or [N, K] int32 or int64, any strides: global ids */
  isobit_tensor temperature; /* [N] or [N, 1] fp32, any stride; absent: temperature_value for every row */

  int64_t first_id;         /* global id of weight row 0 (a vocabulary shard); 0 otherwise */
  int64_t vocab_size;       /* V: ids >= V do not exist (padded weight rows); 0: first_id + Vw */
  int64_t ignore_index;     /* used if use_ignore_index */
  int32_t use_ignore_index; /* 0 or 1 */
  float temperature_value;  /* > 0, finite */
  float softcap;            /* > 0, finite; 0: none */
  int32_t reserved;         /* 0 */

  isobit_tensor logp;         /* [N] or [N, K] fp32, shape of target; absent if not wanted, like all outputs */
  isobit_tensor lse;          /* [N] fp32 */
  isobit_tensor entropy;      /* [N] fp32 */
  isobit_tensor rank;         /* shape of target, int32 */
  isobit_tensor target_logit; /* shape of target, fp32: z of each target id */
  isobit_tensor top_id;       /* [N, T] int32, 1 <= T <= 64, T <= V: ids by descending logit, equal logits by id */
  isobit_tensor top_logp;     /* [N, T] fp32: their log-probabilities; needs top_id */

  void* workspace; /* on the tensors' device, aligned to 256 bytes */
  size_t workspace_bytes;
} isobit_linear_logp_args;

/* Defaults: ignore_index -100 in use, temperature 1, everything else absent or 0. */
#ifdef __cplusplus
static inline isobit_linear_logp_args isobit_linear_logp_args_init() {
  isobit_linear_logp_args args = {}; /* designated initialisers would ask for C++20 and warn under -Wextra */
  args.struct_size = sizeof(isobit_linear_logp_args);
  args.ignore_index = -100;
  args.use_ignore_index = 1;
  args.temperature_value = 1.0f;
  return args;
}
#define ISOBIT_LINEAR_LOGP_ARGS_INIT isobit_linear_logp_args_init()
#else
/* clang-format off */
#define ISOBIT_LINEAR_LOGP_ARGS_INIT \
  { .struct_size = sizeof(isobit_linear_logp_args), .ignore_index = -100, .use_ignore_index = 1, .temperature_value = 1.0f }
/* clang-format on */
#endif

/* Contract id whose bits the call would produce, for example "linear_logp/sm90-k16-f25/1"; static string. */
ISOBIT_API const char* isobit_linear_logp_contract(void);

/* Workspace in bytes: with `minimum` the rows go in chunks, with `recommended` nothing is gained by more. Both are
 * functions of the arguments' shapes, dtypes, options, threads and device only; pointers may be NULL. Serves whole and
 * shard calls; a merge needs no workspace. */
ISOBIT_API isobit_status isobit_linear_logp_workspace(const isobit_linear_logp_args* args, size_t* minimum,
                                                      size_t* recommended);

/* ISOBIT_OK if a call with these arguments would be launched; else the status it would return, and in `why` (size n,
 * may be NULL) the reason, one line per kernel. */
ISOBIT_API isobit_status isobit_linear_logp_supported(const isobit_linear_logp_args* args, char* why, size_t n);

/* Writes the outputs that are present. Needs the whole vocabulary: first_id == 0 and Vw >= V. */
ISOBIT_API isobit_status isobit_linear_logp(const isobit_linear_logp_args* args, void* stream);

/* Reads targets and temperatures and reports the first row that the run would answer with NaN because of them (-1 if
 * none). Synchronises the stream; the run functions never do. */
ISOBIT_API isobit_status isobit_linear_logp_validate(const isobit_linear_logp_args* args, int64_t* first_bad_row,
                                                     void* stream);

/* ---- vocabulary shards ---------------------------------------------------------------------------------------- */

/* A shard is a contiguous range of ids, [first_id, min(first_id + Vw, V)), V = vocab_size given explicitly. Its state
 * is what other ranks need to finish the row with the same bits as one device: complete tree nodes, the raw logits of
 * incomplete border leaves, the target logits it owns, and rank counts. States travel as plain bytes between equal
 * builds. Layout: docs/bit-contract.md. An empty shard (Vw == 0, or first_id >= V) is legal. */

/* Size in bytes of the state that isobit_linear_logp_shard writes for these arguments. Depends on N, K, first_id, Vw, V
 * and on which of entropy and rank are present. */
ISOBIT_API isobit_status isobit_linear_logp_state_bytes(const isobit_linear_logp_args* args, size_t* bytes);

/* Writes this shard's state, to memory aligned to 16 bytes. Outputs in args only say what the merge will want (their
 * data is not touched), except target_logit: with rank present it is an *input*, the logit of every target, gathered
 * before from the owners (a call without rank gives them). top_id is refused. */
ISOBIT_API isobit_status isobit_linear_logp_shard(const isobit_linear_logp_args* args, void* state, void* stream);

typedef struct isobit_linear_logp_state {
  int64_t first_id;
  int64_t count;    /* ids of the shard: min(first_id + Vw, V) - first_id */
  const void* data; /* what isobit_linear_logp_shard wrote, on the device of the outputs */
} isobit_linear_logp_state;

/* Merges the states of all shards (any order, at most 128; together they must partition [0, V)) and writes the outputs.
 * hidden, weight, bias and temperature may be absent; top_id is refused. The result has the bits of isobit_linear_logp
 * over the whole vocabulary. */
ISOBIT_API isobit_status isobit_linear_logp_merge(const isobit_linear_logp_args* args,
                                                  const isobit_linear_logp_state* states, int32_t count, void* stream);

/* ---- backward --------------------------------------------------------------------------------------------------- */

/* Gradients of hidden, weight and bias from the upstream gradients of logp, lse and entropy. Logits are recomputed;
 * nothing of size [N, V] is kept beyond the caller's workspace. bf16 operands only.
 *
 *   dz[n,v] = sum_k d_logp[n,k] ([v == target[n,k]] - p[n,v]) + d_lse[n] p[n,v]
 *             - d_entropy[n] p[n,v] (log p[n,v] + entropy[n])
 *   dt      = dz softcap'(t) / temperature, rounded to bf16 once      t = the logit before softcap and temperature
 *   d_hidden[n] = sum_v dt[n,v] weight[v]     d_weight[v] = sum_n dt[n,v] hidden[n]     d_bias[v] = sum_n dt[n,v]
 *
 * Sums are accumulated in fp32 in the written order of docs/bit-contract.md: a row of d_hidden depends on that row
 * alone, d_weight and d_bias on the valid rows and their order, none of them on chunks, threads, schedules or devices.
 *
 * Special rows: an ignored row has d_hidden +0, its hidden state and upstream gradients are never used. A row with a
 * target outside [0, V) or without a temperature above 0 has d_hidden NaN and adds nothing to d_weight and d_bias. The
 * rest are the valid rows; one with a NaN or +inf logit, or with -inf alone, has NaN in all of its dz. */
typedef struct isobit_linear_logp_backward_args {
  uint32_t struct_size; /* sizeof(isobit_linear_logp_backward_args) */
  int32_t accumulate;   /* 1: d_weight and d_bias (fp32) are the first addend of their sums; 0: they are written */

  /* Inputs, options, kernel, threads and workspace of the call. logp, lse and entropy may be present: the call then
   * writes them too, unless it reads `saved`. rank, target_logit and the top list are refused. */
  isobit_linear_logp_args forward;

  isobit_tensor d_logp;    /* shape of target, fp32, any strides, 0 too; absent: 0, like the other two */
  isobit_tensor d_lse;     /* [N] fp32, likewise */
  isobit_tensor d_entropy; /* [N] fp32, likewise; at least one of the three is present */

  isobit_tensor d_hidden; /* [N, H] bf16 or fp32, stride[1] == 1, stride[0] >= H; absent if not wanted, like all */
  isobit_tensor d_weight; /* [Vw, H] bf16 or fp32, likewise; rows from V on get +0, or stay with accumulate */
  isobit_tensor d_bias;   /* [Vw] bf16 or fp32; needs bias */

  void* saved; /* what isobit_linear_logp_save wrote, aligned to 16 bytes; NULL: the call does that pass itself */
  int32_t
      subtract_p;   /* of the pass that makes `saved`. 0: where a row's likeliest target has p > 1/2, 1 - p is the
                       other ids' share of the sum, right to 2^-18 however confident the row; 1: it is 1 - p in fp32 */
  int32_t reserved; /* 0 */
} isobit_linear_logp_backward_args;

/* Defaults: forward's, everything else absent or 0. */
#ifdef __cplusplus
static inline isobit_linear_logp_backward_args isobit_linear_logp_backward_args_init() {
  isobit_linear_logp_backward_args args = {};
  args.struct_size = sizeof(isobit_linear_logp_backward_args);
  args.forward = isobit_linear_logp_args_init();
  return args;
}
#define ISOBIT_LINEAR_LOGP_BACKWARD_ARGS_INIT isobit_linear_logp_backward_args_init()
#else
/* clang-format off */
#define ISOBIT_LINEAR_LOGP_BACKWARD_ARGS_INIT \
  { .struct_size = sizeof(isobit_linear_logp_backward_args), .forward = ISOBIT_LINEAR_LOGP_ARGS_INIT }
/* clang-format on */
#endif

/* Contract id of the gradients, for example "linear_logp_backward/sm90-k16-f25/1"; static string. */
ISOBIT_API const char* isobit_linear_logp_backward_contract(void);

/* Workspace in bytes for isobit_linear_logp_backward, _save and _backward_shard: functions of shapes, dtypes, options,
 * threads and device, whatever gradients are present. `recommended` is at most 1 GiB unless `minimum` is more. */
ISOBIT_API isobit_status isobit_linear_logp_backward_workspace(const isobit_linear_logp_backward_args* args,
                                                               size_t* minimum, size_t* recommended);

/* As isobit_linear_logp_supported. */
ISOBIT_API isobit_status isobit_linear_logp_backward_supported(const isobit_linear_logp_backward_args* args, char* why,
                                                               size_t n);

/* Writes the gradients that are present, and forward.logp, lse and entropy where nothing was saved. Needs the whole
 * vocabulary. */
ISOBIT_API isobit_status isobit_linear_logp_backward(const isobit_linear_logp_backward_args* args, void* stream);

/* The forward pass of training: writes forward.logp, lse and entropy if present, and `saved`, whose size depends on N
 * alone. The gradients and upstream gradients in args are not looked at. */
ISOBIT_API isobit_status isobit_linear_logp_saved_bytes(const isobit_linear_logp_backward_args* args, size_t* bytes);
ISOBIT_API isobit_status isobit_linear_logp_save(const isobit_linear_logp_backward_args* args, void* stream);

/* `saved` of the whole vocabulary from the states of all its shards (as in isobit_linear_logp_merge), and forward.logp,
 * lse and entropy with the bits of isobit_linear_logp. The states come from shard calls with entropy and without rank;
 * forward.entropy is present and subtract_p is 1 (a state does not hold what the other choice needs). forward's hidden,
 * weight, bias and temperature may be absent. Needs no workspace. */
ISOBIT_API isobit_status isobit_linear_logp_save_merge(const isobit_linear_logp_backward_args* args,
                                                       const isobit_linear_logp_state* states, int32_t count,
                                                       void* stream);

/* One vocabulary shard of the backward pass: reads `saved` of the whole vocabulary, writes the shard's d_weight and
 * d_bias, and to `part`, if it is not NULL, its share of d_hidden as fp32 [P, N, H] without gaps, aligned to 16 bytes;
 * d_hidden itself is absent. With a part the shard's borders must be multiples of ceil(V / 16), or V (equal shards for
 * 2, 4, 8 or 16 ranks are, when V is a multiple of 16); P is 1 for those. */
ISOBIT_API isobit_status isobit_linear_logp_part_bytes(const isobit_linear_logp_backward_args* args, size_t* bytes);
ISOBIT_API isobit_status isobit_linear_logp_backward_shard(const isobit_linear_logp_backward_args* args, void* part,
                                                           void* stream);

/* Adds the parts of all shards (any order, at most 128; together they must partition [0, V)) and writes d_hidden with
 * the bits of isobit_linear_logp_backward; data is what isobit_linear_logp_backward_shard wrote, on d_hidden's device.
 * Reads d_hidden and forward.vocab_size, kernel and threads of args, nothing else; needs no workspace. */
ISOBIT_API isobit_status isobit_linear_logp_backward_merge(const isobit_linear_logp_backward_args* args,
                                                           const isobit_linear_logp_state* parts, int32_t count,
                                                           void* stream);

#ifdef __cplusplus
}
#endif

#endif /* ISOBIT_LINEAR_LOGP_H_ */
