// wgmma: m64nNk16 on bf16 and fp16 with fp32 accumulators, by the four warps of a warpgroup together. The values are
// computed at the issue; the race checker keeps the operation's reads of shared memory open until a wait covers it.
#include <algorithm>
#include <bit>
#include <cstring>

#include "ptx/arithmetic/mma_arithmetic.h"
#include "ptx/decode/families.h"
#include "ptx/engine/lanes.h"
#include "ptx/matrix/matrix_descriptor.h"
#include "ptx/memory/commit_groups.h"
#include "ptx/values/collective.h"

namespace isobit::ptx {
namespace {

constexpr int kM = 64, kK = 16, kMostN = 256, kWarps = 4;
constexpr size_t kRendezvous = 16;  // index in Warp::waiting, behind the named barriers

// mode: MmaFormat, and these
constexpr uint32_t kNegateA = 2, kNegateB = 4, kMajorA = 8, kMajorB = 16, kRegisterA = 32;

// True in the last warp of the warpgroup to come; the others wait until it has acted for all.
bool gather(Warp& w) {
  if (w.cta.warps.size() < static_cast<size_t>(w.index / kWarps * kWarps + kWarps)) {
    throw ExecutionFault{FindingKind::kConvergence, "the warp is in no full warpgroup"};
  }
  NamedBarrier& b = w.cta.warpgroups[static_cast<size_t>(w.index / kWarps)];
  if (w.waiting[kRendezvous]) {
    if (b.generation == w.generation[kRendezvous])
      w.stop(Outcome::kWait);
    else
      w.waiting[kRendezvous] = false;
    return false;
  }
  w.generation[kRendezvous] = b.generation;
  w.engine.progress();
  if (++b.arrived == kWarps) {
    b.arrived = 0;
    ++b.generation;
    return true;
  }
  w.waiting[kRendezvous] = true;
  w.stop(Outcome::kWait);
  return false;
}

struct Operands {
  uint16_t a[kM][kK];
  uint16_t b[kMostN][kK];
  float d[kM][kMostN];
};

size_t registers_of_d(const Instruction& i) { return static_cast<size_t>(i.immediate) / 2; }

void read_fragment_a(Warp& w, const Instruction& i, int first_row, Operands& x) {
  for (int l = 0; l < kLanes; ++l) {
    for (int r = 0; r < 4; ++r) {
      const uint32_t word = w.word(i.list2[static_cast<size_t>(r)])[l];
      const int row = first_row + l / 4 + 8 * (r & 1), column = 2 * (l % 4) + 8 * (r >> 1);
      x.a[row][column] = static_cast<uint16_t>(word);
      x.a[row][column + 1] = static_cast<uint16_t>(word >> 16);
    }
  }
}

float* place_of_d(Operands& x, int first_row, size_t index, int lane) {
  const int row = first_row + lane / 4 + 8 * static_cast<int>(index >> 1 & 1);
  return &x.d[row][8 * static_cast<int>(index / 4) + 2 * (lane % 4) + static_cast<int>(index & 1)];
}

void read_d(Warp& w, const Instruction& i, int first_row, bool accumulate, Operands& x) {
  for (size_t k = 0; k < registers_of_d(i); ++k) {
    const uint32_t* row = w.word(i.list[k]);
    for (int l = 0; l < kLanes; ++l) *place_of_d(x, first_row, k, l) = accumulate ? std::bit_cast<float>(row[l]) : 0.0f;
  }
}

void write_d(Warp& w, const Instruction& i, int first_row, Operands& x) {
  for (size_t k = 0; k < registers_of_d(i); ++k) {
    uint32_t* row = w.word(i.list[k]);
    for (int l = 0; l < kLanes; ++l) row[l] = std::bit_cast<uint32_t>(*place_of_d(x, first_row, k, l));
  }
}

template <size_t Rows>
void negate(uint16_t (&m)[Rows][kK], size_t rows) {
  for (size_t r = 0; r < rows; ++r) {
    for (uint16_t& x : m[r]) x ^= 0x8000;
  }
}

uint64_t uniform_wide(Warp& w, Slot slot) {
  const uint64_t value = w.wide(slot)[0];
  for (int l = 1; l < kLanes; ++l) {
    if (w.wide(slot)[l] != value)
      throw ExecutionFault{FindingKind::kConvergence, "lanes give different matrix descriptors"};
  }
  return value;
}

// The operation of the whole warpgroup; `last` is the warp that came last.
void perform(Warp& last, const Instruction& i) {
  Warp* warps[kWarps];
  for (int k = 0; k < kWarps; ++k) {
    warps[k] = last.cta.warps[static_cast<size_t>(last.index / kWarps * kWarps + k)].get();
    if (warps[k]->pc != last.pc)
      throw ExecutionFault{FindingKind::kConvergence, "the warps of the warpgroup execute different instructions"};
  }
  const AsyncHandle operation = last.engine.begin_operation(last);
  // The instruction orders nothing between the warps: each reads what it knows of itself.
  for (Warp* w : warps) operation->clock.meet(w->clock);
  if (!operation->clock.empty()) operation->clock.seen[static_cast<size_t>(operation->agent)] = operation->epoch;
  operation->done = true;
  thread_local Operands x;
  const int n = static_cast<int>(i.immediate);
  const bool accumulate = last.predicate(i.c) & 1;
  for (int k = 0; k < kWarps; ++k) {
    if (i.mode & kRegisterA) read_fragment_a(*warps[k], i, 16 * k, x);
    read_d(*warps[k], i, 16 * k, accumulate, x);
  }
  if (!(i.mode & kRegisterA))
    read_matrix(last.cta, wgmma_descriptor(uniform_wide(last, i.a)), kM, i.mode & kMajorA, &x.a[0][0], *operation);
  read_matrix(last.cta, wgmma_descriptor(uniform_wide(last, i.b)), n, i.mode & kMajorB, &x.b[0][0], *operation);
  if (i.mode & kNegateA) negate(x.a, kM);
  if (i.mode & kNegateB) negate(x.b, static_cast<size_t>(n));
  last.engine.arithmetic().multiply(
      {static_cast<MmaFormat>(i.mode & 1), kM, n, &x.a[0][0], &x.b[0][0], &x.d[0][0], kMostN});
  for (int k = 0; k < kWarps; ++k) {
    write_d(*warps[k], i, 16 * k, x);
    warps[k]->multiplies.open.push_back(operation);
    if (!last.engine.options().check_races) continue;
    std::vector<Slot> rows = i.list;
    rows.insert(rows.end(), i.list2.begin(), i.list2.end());
    warps[k]->in_flight.start(operation.get(), std::move(rows));
  }
  ++last.engine.statistics().mma;
}

void multiply(Warp& w, const Instruction& i, LaneMask active) {
  if (!converged(w, kAllLanes, active)) return;
  if (!w.multiply_fenced) {
    w.engine.add_finding(FindingKind::kBarrierMisuse, w.pc, -1,
                         "no wgmma.fence since the last wait: registers may still be written");
  }
  if (gather(w)) perform(w, i);
}

void fence(Warp& w, const Instruction&, LaneMask active) {
  if (converged(w, kAllLanes, active)) w.multiply_fenced = true;
}

void commit_group(Warp& w, const Instruction&, LaneMask active) {
  if (converged(w, kAllLanes, active)) commit(w.multiplies);
}

bool is_pending(const CommitGroups& groups, const void* operation) {
  const auto is_it = [&](const AsyncHandle& o) { return o.get() == operation; };
  if (std::any_of(groups.open.begin(), groups.open.end(), is_it)) return true;
  return std::any_of(groups.closed.begin(), groups.closed.end(),
                     [&](const auto& group) { return std::any_of(group.begin(), group.end(), is_it); });
}

void wait_group(Warp& w, const Instruction& i, LaneMask active) {
  if (!converged(w, kAllLanes, active)) return;
  wait_for_groups(w, w.multiplies, i.mode);
  w.in_flight.finish([&](const void* operation) { return !is_pending(w.multiplies, operation); });
  w.multiply_fenced = false;
}

void decode_control(Decoder& d, bool wait, Handler handler) {
  d.expect_count(wait ? 1 : 0, wait ? 1 : 0);
  if (wait) d.out().mode = static_cast<uint32_t>(d.literal(0));
  d.out().flow = Flow::kMayStop;
  d.out().handler = handler;
}

// mNNNk16: the N of a shape modifier.
int take_n(Decoder& d) {
  std::string_view rest;
  if (!d.take_prefix("m64n", rest)) d.fail("expected a shape m64nNk16");
  int n = 0;
  size_t digits = 0;
  for (; digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9'; ++digits)
    n = 10 * n + (rest[digits] - '0');
  if (rest.substr(digits) != "k16" || n < 8 || n > kMostN || n % 8 != 0)
    d.fail("only m64nNk16 with N a multiple of 8 up to 256 is supported");
  return n;
}

// A literal of 1 or -1: true for -1.
bool take_sign(Decoder& d, size_t index) {
  const int64_t value = static_cast<int64_t>(d.literal(index));
  if (value != 1 && value != -1) d.fail("a scale must be 1 or -1");
  return value == -1;
}

void decode_multiply(Decoder& d) {
  Instruction& out = d.out();
  const int n = take_n(d);
  const Type b = d.take_type(), a = d.take_type(), result = d.take_type();
  if (a != b || result != Type::kF32 || (a != Type::kBf16 && a != Type::kF16))
    d.fail("only bf16 and f16 with f32 accumulators are supported");
  const bool registers = d.operand(1).kind == OperandKind::kVector;
  d.expect_count(registers ? 7 : 8, registers ? 7 : 8);
  const Operand& accumulators = d.operand(0);
  if (accumulators.kind != OperandKind::kVector || accumulators.parts.size() != static_cast<size_t>(n / 2))
    d.fail("the accumulator needs N / 2 registers");
  for (const Operand& part : accumulators.parts) out.list.push_back(d.destination(part, Type::kF32));
  if (registers) {
    if (d.operand(1).parts.size() != 4) d.fail("A needs four registers");
    for (const Operand& part : d.operand(1).parts) out.list2.push_back(d.source(part, Type::kB32));
  } else {
    out.a = d.source(1, Type::kB64);
  }
  out.b = d.source(2, Type::kB64);
  out.c = d.predicate(3);
  out.immediate = n;
  out.mode = static_cast<uint32_t>(a == Type::kBf16 ? MmaFormat::kBf16 : MmaFormat::kFp16);
  if (registers) out.mode |= kRegisterA;
  if (take_sign(d, 4)) out.mode |= kNegateA;
  if (take_sign(d, 5)) out.mode |= kNegateB;
  if (!registers && d.literal(6) != 0) out.mode |= kMajorA;
  if (d.literal(registers ? 6 : 7) != 0) out.mode |= kMajorB;
  out.flow = Flow::kMayStop;
  out.role = Role::kMultiply;
  out.handler = multiply;
}

}  // namespace

void decode_wgmma(Decoder& d) {
  d.require("sync");
  d.require("aligned");
  switch (d.require_any({"mma_async", "fence", "commit_group", "wait_group"})) {
    case 0:
      return decode_multiply(d);
    case 1:
      return decode_control(d, false, fence);
    case 2:
      return decode_control(d, false, commit_group);
    default:
      return decode_control(d, true, wait_group);
  }
}

}  // namespace isobit::ptx
