/* linear_logp over several GPUs that share the vocabulary, carried by NCCL. Functions of libisobit_nccl, a library of
 * its own: libisobit neither needs nor loads NCCL.
 *
 * The bits of logp, lse, entropy and target_logit are those of isobit_linear_logp on one device, for any number of
 * ranks and any borders, odd ones too. Every rank gets the outputs of every row.
 *
 * A call is one shard pass on each rank, one all-gather of the shards' states and one merge. isobit_tp_state_bytes says
 * how much a rank sends. The backward pass needs nothing of the others for d_weight and d_bias; for d_hidden the ranks
 * exchange their parts by rows, each adds those of its rows in the contract's tree, and all gather the sums.
 * docs/tensor-parallel.md has the steps of a program, and what has not run yet.
 */
#ifndef ISOBIT_TENSOR_PARALLEL_H_
#define ISOBIT_TENSOR_PARALLEL_H_

#include <isobit/linear_logp.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the ranks of a communicator have agreed upon. One thread at a time may use it. */
typedef struct isobit_tp isobit_tp;

/* Message of the last call of this thread to a function of this header that did not return ISOBIT_OK. */
ISOBIT_API const char* isobit_tp_last_error(void);

/* Makes the agreement that this rank's calls rely on. Every rank of `communicator`, an ncclComm_t of at most 128 ranks
 * that belongs to the caller and outlives *tp, calls this at the same point of its order of collectives. The ranks
 * exchange one record each, on a stream of their own, and wait for it:
 *  - the ids [first_id, min(first_id + Vw, V)) of the ranks, of some none, must partition [0, V), V = vocab_size;
 *  - N, H, V, K, the dtypes, the options, the presence of bias, temperature and entropy, the compute capability and the
 *    version of isobit must be equal.
 * If any of this does not hold, every rank returns the same status and line. If a rank's own arguments are refused, it
 * returns that refusal, and the others its status and its number. A null communicator or tp and a timeout_ms of 0 or
 * less are refused before the exchange: the others then wait for their time.
 *
 * `args` has the shapes, dtypes, strides, options and outputs of the calls to come; pointers may be NULL. rank and the
 * top list are refused. Of NCCL the library uses what the process has loaded, since the communicator is a pointer into
 * it: a symbol of the program, or libnccl.so.2.
 *
 * A rank that does not come: ISOBIT_DEVICE_ERROR after timeout_ms (> 0) milliseconds. A thread of the library then
 * still waits in the communicator's collective; ncclCommAbort(communicator) is the only thing left to do with it, and
 * ends that thread. */
ISOBIT_API isobit_status isobit_tp_create(void* communicator, const isobit_linear_logp_args* args, int32_t timeout_ms,
                                          isobit_tp** tp);

/* Frees *tp (NULL is fine), not the communicator. Work on a stream does not need it any more. */
ISOBIT_API void isobit_tp_destroy(isobit_tp* tp);

/* Bytes that this rank sends to each of the others in a call: the size of the largest state of all ranks. */
ISOBIT_API isobit_status isobit_tp_state_bytes(const isobit_tp* tp, size_t* bytes);

/* Workspace of isobit_tp_linear_logp in bytes: the states of all ranks and what the shard pass needs; as
 * isobit_linear_logp_workspace. */
ISOBIT_API isobit_status isobit_tp_workspace(const isobit_tp* tp, const isobit_linear_logp_args* args, size_t* minimum,
                                             size_t* recommended);

/* Writes logp, lse, entropy and target_logit where present. hidden, target and temperature hold the same values on all
 * ranks, weight and bias this rank's ids. What was agreed must not change; pointers, strides, workspace, threads and
 * kernel may. Never allocates or synchronises; may be captured in a CUDA graph. As with every collective, all ranks
 * make the call in the same order, and one that is refused leaves the others waiting on the device. */
ISOBIT_API isobit_status isobit_tp_linear_logp(const isobit_tp* tp, const isobit_linear_logp_args* args, void* stream);

/* ---- backward --------------------------------------------------------------------------------------------------- */

/* As isobit_tp_create, for forward and backward calls with the shapes, dtypes, options, upstream gradients and d_hidden
 * of `args`, which must be equal on all ranks; d_weight, d_bias and accumulate are a rank's own affair. With d_hidden
 * present every rank's borders must be multiples of ceil(V / 16), or V (equal shards for 2, 4, 8 or 16 ranks are, when
 * V is a multiple of 16): others have no bits in common with one device, and are refused on every rank. forward's
 * outputs may be absent. */
ISOBIT_API isobit_status isobit_tp_create_training(void* communicator, const isobit_linear_logp_backward_args* args,
                                                   int32_t timeout_ms, isobit_tp** tp);

/* Bytes that this rank sends to the others together in a backward call: the parts of d_hidden of the rows that they
 * add, and its own rows of d_hidden to each; 0 without d_hidden. */
ISOBIT_API isobit_status isobit_tp_backward_bytes(const isobit_tp* tp, size_t* bytes);

/* Workspace of the two calls below in bytes: the states of all ranks, or the parts of d_hidden, and what the shard
 * passes need. */
ISOBIT_API isobit_status isobit_tp_backward_workspace(const isobit_tp* tp, const isobit_linear_logp_backward_args* args,
                                                      size_t* minimum, size_t* recommended);

/* The forward pass of training: writes forward.logp, lse and entropy (the last must be present) and `saved`, all of
 * isobit_linear_logp_saved_bytes. subtract_p is 1, as in isobit_linear_logp_save_merge. One all-gather. */
ISOBIT_API isobit_status isobit_tp_linear_logp_save(const isobit_tp* tp, const isobit_linear_logp_backward_args* args,
                                                    void* stream);

/* Reads `saved` and writes d_weight and d_bias of this rank's ids and, if present, d_hidden, on every rank that of all
 * ids; its rows have no gaps between them (stride[0] == H). The bits are those of isobit_linear_logp_backward on one
 * device. Two collectives with d_hidden, none without. */
ISOBIT_API isobit_status isobit_tp_linear_logp_backward(const isobit_tp* tp,
                                                        const isobit_linear_logp_backward_args* args, void* stream);

#ifdef __cplusplus
}
#endif

#endif /* ISOBIT_TENSOR_PARALLEL_H_ */
