// Branches, ends, and hints about execution that change no value.
#include "ptx/decode/families.h"
#include "ptx/engine/lanes.h"

namespace isobit::ptx {
namespace {

void do_nothing(Warp&, const Instruction&, LaneMask) {}

void yield(Warp& w, const Instruction&, LaneMask) { w.stop(Outcome::kYield); }

void trap(Warp&, const Instruction&, LaneMask) { throw ExecutionFault{FindingKind::kTrap, "trap"}; }

// The policy's bits are opaque; zero stands for every policy.
void make_policy(Warp& w, const Instruction& i, LaneMask active) {
  for_each_lane(active, [&](int l) { w.wide(i.d)[l] = 0; });
}

int32_t find_label(Decoder& d, std::string_view name) {
  const auto target = d.scope().label(name, d.statement().scope);
  if (!target) d.fail("unknown label " + std::string(name));
  return static_cast<int32_t>(*target);
}

void expect_symbol(Decoder& d, size_t index) {
  if (d.operand(index).kind != OperandKind::kSymbol) d.fail("expected a label");
}

}  // namespace

void decode_bra(Decoder& d) {
  d.take("uni");
  d.expect_count(1, 1);
  expect_symbol(d, 0);
  d.out().flow = Flow::kBranch;
  d.out().target = find_label(d, d.operand(0).name);
}

void decode_brx(Decoder& d) {
  d.require("idx");
  d.take("uni");
  d.expect_count(2, 2);
  expect_symbol(d, 1);
  d.out().flow = Flow::kBranchTable;
  d.out().a = d.source(0, Type::kU32);
  const auto* targets = d.scope().branch_targets(d.operand(1).name, d.statement().scope);
  if (!targets) d.fail("unknown branch table");
  for (const std::string_view target : *targets) d.out().list.push_back(find_label(d, target));
}

void decode_ret(Decoder& d) {
  d.take("uni");
  d.expect_count(0, 0);
  d.out().flow = Flow::kExit;
}

void decode_trap(Decoder& d) {
  d.expect_count(0, 0);
  d.out().handler = trap;
}

void decode_nanosleep(Decoder& d) {
  d.require("u32");
  d.expect_count(1, 1);
  d.source(0, Type::kU32);
  d.out().flow = Flow::kMayStop;
  d.out().handler = yield;
}

void decode_setmaxnreg(Decoder& d) {
  d.require_any({"inc", "dec"});
  d.require("sync");
  d.require("aligned");
  d.require("u32");
  d.expect_count(1, 1);
  const uint64_t registers = d.literal(0);
  if (registers < 24 || registers > 256 || registers % 8 != 0) d.fail("expected a multiple of 8 from 24 to 256");
  d.out().handler = do_nothing;
}

void decode_griddepcontrol(Decoder& d) {
  d.require_any({"launch_dependents", "wait"});
  d.expect_count(0, 0);
  d.out().handler = do_nothing;
}

void decode_createpolicy(Decoder& d) {
  d.require("fractional");
  d.require_any({"L2::evict_first", "L2::evict_last", "L2::evict_normal", "L2::evict_unchanged"});
  d.require("b64");
  d.expect_count(1, 2);
  if (d.count() == 2) d.source(1, Type::kF32);
  d.out().d = d.destination(0, Type::kB64);
  d.out().handler = make_policy;
}

}  // namespace isobit::ptx
