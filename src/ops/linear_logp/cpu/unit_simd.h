// Loops over the 64 logits of one row and unit, written so that compilers vectorise them (AVX2 or NEON: what the
// library is compiled for). Bits equal to the scalar definitions in unit.h and logit.h.
#pragma once

#include "ops/linear_logp/node.h"

namespace isobit::linear_logp::cpu {

// z[i] = finish_logit(z[i], bias + i or null, softcap, temperature).
void finish_logits(float* z, int count, const float* bias, float softcap, float temperature);

// reduce_unit<kEntropy>(z, count).
template <bool kEntropy>
Node reduce_unit_simd(const float* z, int count);

// Of the logits z[i] with ids first_id + i, how many rank before the target's.
int32_t count_before(const float* z, int count, int64_t first_id, float target_z, int64_t target_id);

// Whether one of them is at least `limit`.
bool any_at_least(const float* z, int count, float limit);

}  // namespace isobit::linear_logp::cpu
