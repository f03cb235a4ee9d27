/* Log-probabilities of tokens with the LM head split over the processes of a job, one GPU each.
 *
 *   head_over_ranks RANK RANKS ID_FILE
 *
 * Start one process a rank, all with the same ID_FILE, a path that they share and that does not exist yet: rank 0
 * writes NCCL's unique id to it. (A job with MPI or a store of its own sends those 128 bytes its own way.) Every rank
 * then holds the log-probabilities of all tokens, with the bits of one GPU: each checks that against a call over the
 * whole head. */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include <cuda_runtime_api.h>
#include <isobit/tensor_parallel.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kRows = 300, kWidth = 512, kVocab = 50257, kPatience = 30000 };

static void require(int good, const char* what, const char* why) {
  if (good) return;
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}
static void check_cuda(cudaError_t error, const char* what) {
  require(error == cudaSuccess, what, cudaGetErrorString(error));
}
static void check_nccl(ncclResult_t result, const char* what) {
  require(result == ncclSuccess, what, ncclGetErrorString(result));
}

/* Rank 0 writes the id beside the file and renames it, so that nobody reads half of one. */
static ncclUniqueId meet(int rank, const char* path) {
  ncclUniqueId id;
  const struct timespec pause = {0, 10 * 1000 * 1000};
  char beside[4096];
  snprintf(beside, sizeof beside, "%s.new", path);
  if (rank == 0) {
    check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    FILE* file = fopen(beside, "wb");
    require(file != NULL && fwrite(&id, sizeof id, 1, file) == 1 && fclose(file) == 0 && rename(beside, path) == 0,
            path, "could not be written");
    return id;
  }
  for (int waited = 0; waited < kPatience; waited += 10) {
    FILE* file = fopen(path, "rb");
    if (file != NULL) {
      require(fread(&id, sizeof id, 1, file) == 1, path, "could not be read");
      fclose(file);
      return id;
    }
    nanosleep(&pause, NULL);
  }
  require(0, path, "rank 0 did not write it");
  return id;
}

static void* to_device(const void* host, size_t bytes) {
  void* device = NULL;
  check_cuda(cudaMalloc(&device, bytes), "cudaMalloc");
  if (host != NULL) check_cuda(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy");
  return device;
}

/* bf16 numbers between -1/32 and 1/32, the same in every process: a sign, an exponent and seven bits of significand. */
static void* random_matrix(long rows, long columns, unsigned seed) {
  const size_t count = (size_t)rows * (size_t)columns;
  unsigned short* host = malloc(count * sizeof *host);
  require(host != NULL, "malloc", "no memory");
  for (size_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    host[i] = (unsigned short)((seed >> 16 & 0x8000u) | (118u + (seed >> 20 & 3u)) << 7 | (seed >> 24 & 0x7Fu));
  }
  void* device = to_device(host, count * sizeof *host);
  free(host);
  return device;
}

static isobit_tensor view(void* data, isobit_dtype dtype, int device, long rows, long columns) {
  isobit_tensor t = {0};
  t.data = data;
  t.dtype = dtype;
  t.device_type = ISOBIT_CUDA;
  t.device_id = device;
  t.rank = columns > 0 ? 2 : 1;
  t.shape[0] = rows;
  t.shape[1] = columns;
  t.stride[0] = columns > 0 ? columns : 1;
  t.stride[1] = columns > 0 ? 1 : 0;
  return t;
}

static void take_workspace(isobit_linear_logp_args* args, size_t bytes) {
  args->workspace = to_device(NULL, bytes);
  args->workspace_bytes = bytes;
}

static void call_over_ranks(ncclComm_t communicator, isobit_linear_logp_args args, cudaStream_t stream) {
  isobit_tp* tp = NULL;
  size_t bytes = 0;
  require(isobit_tp_create(communicator, &args, kPatience, &tp) == ISOBIT_OK, "create", isobit_tp_last_error());
  require(isobit_tp_workspace(tp, &args, NULL, &bytes) == ISOBIT_OK, "workspace", isobit_tp_last_error());
  take_workspace(&args, bytes);
  require(isobit_tp_linear_logp(tp, &args, stream) == ISOBIT_OK, "call", isobit_tp_last_error());
  check_cuda(cudaStreamSynchronize(stream), "a call over ranks");
  isobit_tp_destroy(tp);
  cudaFree(args.workspace);
}

static void call_on_one(isobit_linear_logp_args args, cudaStream_t stream) {
  size_t bytes = 0;
  require(isobit_linear_logp_workspace(&args, NULL, &bytes) == ISOBIT_OK, "workspace", isobit_last_error());
  take_workspace(&args, bytes);
  require(isobit_linear_logp(&args, stream) == ISOBIT_OK, "call", isobit_last_error());
  check_cuda(cudaStreamSynchronize(stream), "a call on one GPU");
  cudaFree(args.workspace);
}

int main(int argc, char** argv) {
  require(argc == 4, "usage", "head_over_ranks RANK RANKS ID_FILE");
  const int rank = atoi(argv[1]), ranks = atoi(argv[2]);
  int devices = 0;
  check_cuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  require(devices > 0, "cudaGetDeviceCount", "no GPU");
  const int device = rank % devices; /* one GPU a rank and host */
  check_cuda(cudaSetDevice(device), "cudaSetDevice");
  ncclComm_t communicator = NULL;
  check_nccl(ncclCommInitRank(&communicator, ranks, meet(rank, argv[3]), rank), "ncclCommInitRank");
  cudaStream_t stream = NULL;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");

  int target[kRows];
  for (int row = 0; row < kRows; ++row) target[row] = (row * 7919) % kVocab;
  char* const weight = random_matrix(kVocab, kWidth, 2); /* a program would load its own rows only */
  float* const logp = to_device(NULL, 2 * sizeof target);
  isobit_linear_logp_args args = ISOBIT_LINEAR_LOGP_ARGS_INIT;
  args.hidden = view(random_matrix(kRows, kWidth, 1), ISOBIT_BF16, device, kRows, kWidth);
  args.weight = view(weight, ISOBIT_BF16, device, kVocab, kWidth);
  args.target = view(to_device(target, sizeof target), ISOBIT_INT32, device, kRows, 0);
  args.logp = view(logp + kRows, ISOBIT_FP32, device, kRows, 0);
  args.vocab_size = kVocab;

  isobit_linear_logp_args mine = args;
  mine.first_id = (long)kVocab * rank / ranks / 128 * 128; /* multiples of 128 send least */
  const long end = rank + 1 == ranks ? kVocab : (long)kVocab * (rank + 1) / ranks / 128 * 128;
  mine.weight = view(weight + mine.first_id * kWidth * 2, ISOBIT_BF16, device, end - mine.first_id, kWidth);
  mine.logp = view(logp, ISOBIT_FP32, device, kRows, 0);
  call_over_ranks(communicator, mine, stream);
  call_on_one(args, stream);

  float host[2 * kRows];
  check_cuda(cudaMemcpy(host, logp, sizeof host, cudaMemcpyDeviceToHost), "cudaMemcpy");
  const int equal = memcmp(host, host + kRows, sizeof target) == 0;
  printf("rank %d of %d, ids %ld to %ld: logp[0] = %.9g, %d rows %s one GPU's\n", rank, ranks, (long)mine.first_id, end,
         (double)host[0], kRows, equal ? "equal" : "DIFFER from");
  check_nccl(ncclCommDestroy(communicator), "ncclCommDestroy");
  return equal ? 0 : 1;
}
