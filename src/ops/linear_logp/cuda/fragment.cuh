// Units from the accumulators of an MMA, where every lane has, of two rows, ids 8 j + 2 q + e of each unit (q = lane
// % 4): d[32 unit + 4 j + e] for the first row, + 2 for the row eight below.
//
// Two paths with the same bits. The short one serves a warp whose logits are all within +-kPlainLimit, in a tile
// without a shard's borders: straight-line code on registers, the vocabulary's last unit excepted if it is not whole.
// Everything else goes through a column of 16 words per lane in shared memory and rolled loops, so that it costs
// neither registers nor spills.
#pragma once

#include "ops/linear_logp/cuda/fragment_options.cuh"
#include "ops/linear_logp/cuda/fragment_ranks.cuh"
#include "ops/linear_logp/cuda/unit_sum.cuh"

namespace isobit::linear_logp::cuda {

template <int kCount>
__device__ __forceinline__ bool all_plain(const float (&d)[kCount]) {
  float size[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
  for (int i = 0; i < kCount; ++i) size[i % 4] = device::ptx::max_nan(size[i % 4], fabsf(d[i]));
  const float largest =
      device::ptx::max_nan(device::ptx::max_nan(size[0], size[1]), device::ptx::max_nan(size[2], size[3]));
  return largest <= kPlainLimit;  // false for NaN
}

// Sum of one unit of one row: the column pairs j, j + 4, then e, j bit 0, j bit 1, then the lanes.
template <bool kEntropy, int kCount>
__device__ __forceinline__ PairSum plain_unit(const float (&d)[kCount], int unit, int h) {
  float s[8];
  float q[8] = {};
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    const float low = d[32 * unit + 4 * (c / 2) + 2 * h + c % 2];
    const float high = d[32 * unit + 16 + 4 * (c / 2) + 2 * h + c % 2];
    const float a = plain_term(low);
    const float b = plain_term(high);
    s[c] = numerics::add_rn(a, b);
    if constexpr (kEntropy) q[c] = numerics::fma_rn(b, high, numerics::mul_rn(a, low));
  }
#pragma unroll
  for (int step = 1; step < 8; step *= 2) {
#pragma unroll
    for (int c = 0; c < 8; c += 2 * step) {
      s[c] = numerics::add_rn(s[c], s[c + step]);
      if constexpr (kEntropy) q[c] = numerics::add_rn(q[c], q[c + step]);
    }
  }
  return {add_lanes<1, 2>(s[0]), kEntropy ? add_lanes<1, 2>(q[0]) : 0.0f};
}

// The column pairs j, j + 4 of one unit of one row, in place: sums of terms where the lower logit was, weighted ones
// where the higher one was.
template <int kCount>
__device__ __forceinline__ void sum_pairs(float (&d)[kCount], int unit, int h) {
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    float& low = d[32 * unit + 4 * (c / 2) + 2 * h + c % 2];
    float& high = d[32 * unit + 16 + 4 * (c / 2) + 2 * h + c % 2];
    const float a = plain_term(low);
    const float b = plain_term(high);
    high = numerics::fma_rn(b, high, numerics::mul_rn(a, low));
    low = numerics::add_rn(a, b);
  }
}

// plain_unit from the pairs of sum_pairs.
template <int kCount>
__device__ __forceinline__ PairSum unit_of_pairs(const float (&d)[kCount], int unit, int h) {
  const auto tree = [&](int first) {
    float x[8];
#pragma unroll
    for (int c = 0; c < 8; ++c) x[c] = d[first + 32 * unit + 4 * (c / 2) + 2 * h + c % 2];
#pragma unroll
    for (int step = 1; step < 8; step *= 2) {
#pragma unroll
      for (int c = 0; c < 8; c += 2 * step) x[c] = numerics::add_rn(x[c], x[c + step]);
    }
    return add_lanes<1, 2>(x[0]);
  };
  return {tree(0), tree(16)};
}

// A logit that a shard hands on as it is. Nothing of an ignored row leaves the shard.
__device__ __forceinline__ void store_raw(const Job& job, int64_t id, int32_t row, float z) {
  const float value = is_ignored_row(job.p, row) ? kMinusInfinity : numerics::canonical_nan(z);
  job.raw[raw_slot(job.parts, id) * job.raw_stride + row] = value;
}

// Logits of one unit of one row, in place in the column; ids outside the range become -inf. first_id is that of this
// lane's j = 0, e = 0.
__device__ __forceinline__ UnitScan scan_column(const Job& job, float* column, int32_t row, int32_t first_id) {
  const bool row_exists = row < job.p.rows;
  UnitScan scan;
#pragma unroll 1
  for (int i = 0; i < kColumnWords; ++i) {
    const int64_t id = int64_t{first_id} + 8 * (i / 2) + i % 2;
    float& z = column[i * kWarpThreads];
    if (id < job.p.first_id || id >= job.p.first_id + job.p.count) {
      z = kMinusInfinity;
      continue;
    }
    scan.add(z);
    if (job.raw != nullptr && row_exists && is_raw(job.parts, id)) store_raw(job, id, row, z);
  }
  return scan;
}

// One unit of one row from its column.
template <Mode kMode>
__device__ __forceinline__ Node column_unit(const Job& job, float* column, int32_t row, int32_t first_id) {
  const UnitScan scan = join_scans<1, 2>(scan_column(job, column, row, first_id));
  const UnitReference reference = unit_reference(scan.magnitude, scan.largest);
#pragma unroll 1
  for (int c = 0; c < 8; ++c) {
    float& low = column[c * kWarpThreads];
    float& high = column[(c + 8) * kWarpThreads];
    const PairSum pair = pair_sum(low, high, reference);
    low = pair.s;
    high = pair.q;
  }
  const auto tree = [&](const float* x) {
    const auto pair = [&](int c) { return numerics::add_rn(x[c * kWarpThreads], x[(c + 1) * kWarpThreads]); };
    return add_lanes<1, 2>(numerics::add_rn(numerics::add_rn(pair(0), pair(2)), numerics::add_rn(pair(4), pair(6))));
  };
  const float s = tree(column);
  const float q = kMode != Mode::kLogp ? tree(column + 8 * kWarpThreads) : 0.0f;
  return settle(scan, reference, s, q);
}

// Sums of the ragged unit in both row halves, by its ids that exist. All its logits are within +-kPlainLimit.
template <Mode kMode, int kUnits>
__device__ __forceinline__ void sum_ragged(const Job& job, const float (&d)[32 * kUnits], const Place& place,
                                           PairSum (&sum)[2]) {
#pragma unroll 1
  for (int h = 0; h < 2; ++h) {
    to_column<kUnits>(d, h * kUnits + place.ragged, place.column);
    const Node node = column_unit<kMode>(job, place.column, place.row + 8 * h,
                                         place.id + 64 * place.ragged + 2 * static_cast<int>(threadIdx.x % 4));
    sum[0] = h == 0 ? PairSum{node.s, node.q} : sum[0];
    sum[1] = {node.s, node.q};
  }
}

// All units of the fragment, to a sink that the tile's shape defines:
//   sink.plain(h, unit)        the kUnits sums of row half h, all with reference exponent 0; those of absent units are
//                              noise
//   sink.general(h, u, node)   one unit; u ascends within h
// Every lane of a quad calls it with the same values. In kFull mode d holds the finished logits afterwards.
template <Mode kMode, int kUnits, class Sink>
__device__ __forceinline__ void reduce_fragment(const Job& job, float (&d)[32 * kUnits], const Place& place,
                                                Sink& sink) {
  if constexpr (kMode == Mode::kFull) {
    if (finishes_logits(job.p)) finish_logits<kUnits>(job, d, place);
    if (job.top.logits != nullptr || job.rank.data != nullptr) mask_absent<kUnits>(job, d, place);
    if (job.top.logits != nullptr) {
      store_logits<kUnits>(job, d, place);
      store_maxima<kUnits>(job, d, place);
    }
    if (job.rank.data != nullptr) count_ranks<kUnits>(job, d, place);
  }
  if (job.select_targets) select_targets<kUnits>(job, d, place);
  if (job.lead_leaf != nullptr) keep_lead_leaf<kUnits>(job, d, place);
  bool plain;
  if constexpr (kMode == Mode::kFull) {
    plain = has_no_border<kUnits>(job, place);
  } else {
    plain = place.whole;
  }
  // Rows that do not exist may hold anything.
  if (__all_sync(kWarp, plain && (place.row >= job.p.rows || all_plain(d)))) {
    PairSum ragged[2] = {};
    if (kMode != Mode::kFull && place.ragged >= 0) sum_ragged<kMode, kUnits>(job, d, place, ragged);
    if constexpr (kMode == Mode::kFull) {
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          if (is_launched(job, 2 * u + h)) sum_pairs(d, u, h);
        }
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      PairSum unit[kUnits];
#pragma unroll
      for (int u = 0; u < kUnits; ++u) {
        if constexpr (kMode == Mode::kFull) {
          unit[u] = unit_of_pairs(d, u, h);
        } else {
          unit[u] = plain_unit<kMode != Mode::kLogp>(d, u, h);
        }
        if (kMode != Mode::kFull && u == place.ragged) unit[u] = ragged[h];
      }
      sink.plain(h, unit);
    }
    return;
  }
#pragma unroll 1
  for (int index = 0; index < 2 * kUnits; ++index) {
    const int h = index / kUnits;
    const int u = index % kUnits;
    to_column<kUnits>(d, index, place.column);
    sink.general(h, u,
                 column_unit<kMode>(job, place.column, place.row + 8 * h,
                                    place.id + 64 * u + 2 * static_cast<int>(threadIdx.x % 4)));
  }
}

}  // namespace isobit::linear_logp::cuda
