/* What the NVFP4 operators share: the packed matrix, its block scales, and the two directions of a global scale.
 *
 * A matrix [R, K] (K a positive multiple of 16) is held as
 *   codes   [R, K/2] uint8: two E2M1 values a byte, the even column in the low nibble
 *   scales  one E4M3 byte for each block of 16 neighbouring columns of a row
 * and stands for  value(r, k) = E2M1(code) * E4M3(scale of block k / 16) * d   with one global *decode* scale d.
 *
 * Layouts of the scales. B = K/16 blocks a row. The buffer is dense; padding bytes are written as 0 and never read as
 * values.
 *   LINEAR  [R, B]: byte r * B + b
 *   128X4   R padded to 128, B to 4: tiles of 128 x 4 bytes, tiles consecutive along the blocks; inside a tile
 *           r % 32 * 16 + r % 128 / 32 * 4 + b % 4. What block-scaled matrix instructions, cuBLAS, CUTLASS, FlashInfer
 *           and Transformer Engine use.
 *   8X4     R padded to 8, B to 4: tiles of 8 x 4 bytes, consecutive along the blocks, row-major inside (FlashInfer's
 *           small-M layout)
 *
 * Global scales come in two directions, and checkpoints use both:
 *   encode  multiplies the tensor before it is quantised, usually 2688 / amax (2688 = 448 * 6). The quantiser's
 *           global_scale and nvfp4_geglu's out_scale are encode scales. FlashInfer, TensorRT-LLM and vLLM store it;
 *           compressed-tensors calls it weight_global_scale and input_global_scale, CUTLASS norm_constant.
 *   decode  its reciprocal, amax / 2688, multiplies the decoded values. The scales of x and of weights are decode
 *           scales. ModelOpt stores it as weight_scale_2 and input_scale, torchao as per_tensor_scale.
 * For a tensor of zeros use 1 in both directions.
 */
#ifndef ISOBIT_NVFP4_H_
#define ISOBIT_NVFP4_H_

#include <isobit/isobit.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t isobit_nvfp4_layout;
enum { ISOBIT_NVFP4_LINEAR = 0, ISOBIT_NVFP4_128X4 = 1, ISOBIT_NVFP4_8X4 = 2 };

typedef struct isobit_nvfp4_matrix {
  isobit_tensor codes;  /* [..., K/2] uint8, last stride 1, any row stride; leading dimensions step evenly */
  isobit_tensor scales; /* uint8, dense: [padded R, padded B] or [bytes], see isobit_nvfp4_scales_shape */
  isobit_nvfp4_layout layout;
  int32_t reserved; /* 0 */
} isobit_nvfp4_matrix;

/* A global scale: positive and finite. If `tensor` is there (fp32, one element, on the call's device) it is read when
 * the call runs and `value` is ignored; a value in it that is not positive and finite counts as NaN. */
typedef struct isobit_nvfp4_scale {
  isobit_tensor tensor;
  float value;
  int32_t reserved; /* 0 */
} isobit_nvfp4_scale;

/* Shape of the scale buffer of a matrix [rows, k]; it has *padded_rows * *padded_blocks bytes. */
ISOBIT_API isobit_status isobit_nvfp4_scales_shape(isobit_nvfp4_layout layout, int64_t rows, int64_t k,
                                                   int64_t* padded_rows, int64_t* padded_blocks);

#ifdef __cplusplus
}
#endif

#endif /* ISOBIT_NVFP4_H_ */
