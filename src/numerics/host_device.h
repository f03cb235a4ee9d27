// The mark for functions that are defined once and compiled for the host and for the device.
#pragma once

#ifdef __CUDACC__
#define ISOBIT_HD __host__ __device__ __forceinline__
#else
#define ISOBIT_HD inline
#endif
