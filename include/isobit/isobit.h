/* isobit: fused kernels whose bits never depend on batching, tiling, scheduling or sharding.
 *
 * This header holds what every operator shares: status codes, the tensor view, devices and the list of kernels.
 * One more header per operator: linear_logp.h, ...  All of them are C11 and need no CUDA header.
 *
 * Rules that hold for every function:
 *  - The return value is a status. All but ISOBIT_OK and ISOBIT_DEVICE_ERROR leave the outputs untouched. A line of
 *    isobit_last_error() names argument, rule, expected and found; where no kernel takes the call, one more for each.
 *  - Nothing is thrown, printed or terminated. Every function may be called from several threads at once.
 *  - Run functions never allocate, never synchronise and never touch the default stream unless it is the one given.
 *    The caller owns all memory; sizes come from queries.
 *  - `stream` is a cudaStream_t passed as void* (NULL: the default stream). CPU tensors ignore it and the call
 *    returns when the outputs are written.
 */
#ifndef ISOBIT_ISOBIT_H_
#define ISOBIT_ISOBIT_H_

#include <stddef.h>
#include <stdint.h>

#define ISOBIT_VERSION_MAJOR 0
#define ISOBIT_VERSION_MINOR 1
#define ISOBIT_VERSION_PATCH 0

#if defined(__GNUC__)
#define ISOBIT_API __attribute__((visibility("default")))
#else
#define ISOBIT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status -------------------------------------------------------------------------------------------------- */

typedef int32_t isobit_status;
enum {
  ISOBIT_OK = 0,
  ISOBIT_INVALID_ARGUMENT = 1, /* an argument breaks a rule of the contract */
  ISOBIT_UNSUPPORTED = 2,      /* legal, but no kernel of this build takes it on this device; never a fallback */
  ISOBIT_WORKSPACE_TOO_SMALL = 3,
  ISOBIT_DEVICE_ERROR = 4, /* the CUDA runtime or driver refused; a part of the call may have been launched before */
  ISOBIT_INTERNAL_ERROR = 5
};

/* Static string for a status, never NULL. */
ISOBIT_API const char* isobit_status_string(isobit_status status);

/* Message of the last call of this thread that did not return ISOBIT_OK; "" if there was none. Valid until the next
 * isobit call of the same thread. */
ISOBIT_API const char* isobit_last_error(void);

/* Version of the library that is loaded, as major * 10000 + minor * 100 + patch. */
ISOBIT_API int32_t isobit_version(void);

/* One line about the build: version, compiler, CUDA toolkit or "without CUDA", architectures. */
ISOBIT_API const char* isobit_build_info(void);

/* ---- tensors ------------------------------------------------------------------------------------------------- */

typedef int32_t isobit_dtype;
enum {
  ISOBIT_NONE = 0, /* the tensor is absent */
  ISOBIT_BF16 = 1,
  ISOBIT_FP16 = 2,
  ISOBIT_FP32 = 3,
  ISOBIT_INT32 = 4,
  ISOBIT_INT64 = 5,
  ISOBIT_UINT8 = 6 /* also packed E2M1 pairs and E4M3 scales */
};

typedef int32_t isobit_device_type;
enum { ISOBIT_CPU = 1, ISOBIT_CUDA = 2 }; /* the values of DLPack */

/* A view of caller-owned memory. shape and stride count elements; stride may be 0 (expanded) where the operator says
 * so. A zero-initialised view (dtype ISOBIT_NONE) is an absent tensor. data may be NULL if a dimension is 0. */
typedef struct isobit_tensor {
  void* data;
  isobit_dtype dtype;
  isobit_device_type device_type;
  int32_t device_id;
  int32_t rank; /* 0 to 4 */
  int64_t shape[4];
  int64_t stride[4];
} isobit_tensor;

/* ---- devices and kernels ------------------------------------------------------------------------------------- */

/* Number of CUDA devices, 0 without a driver or without CUDA in the build. */
ISOBIT_API int32_t isobit_device_count(void);

/* Name and compute capability (major * 10 + minor) of a CUDA device. name may be NULL. */
ISOBIT_API isobit_status isobit_device_info(int32_t device_id, char* name, size_t name_size, int32_t* capability);

/* One row of the table of kernels. Strings are static except `reason`, which is valid until the thread's next call. */
typedef struct isobit_kernel_info {
  uint32_t struct_size;      /* sizeof(isobit_kernel_info), set by the caller */
  const char* op;            /* "linear_logp" */
  const char* kernel;        /* "cpu", "sm90", ...: the name that an args struct takes as `kernel` */
  const char* architectures; /* "x86-64-v3, x86-64-v4, aarch64" or "90a" */
  const char* contract;      /* contract id whose bits it produces */
  int32_t built;             /* 1 if this build contains it */
  int32_t usable;            /* 1 if some device of this machine can run it */
  const char* reason;        /* why it is not usable, "" if it is */
} isobit_kernel_info;

/* Rows of the table of kernels, all operators, best row of an operator first. */
ISOBIT_API int32_t isobit_kernel_count(void);
ISOBIT_API isobit_status isobit_get_kernel_info(int32_t index, isobit_kernel_info* info);

#ifdef __cplusplus
}
#endif

#endif /* ISOBIT_ISOBIT_H_ */
