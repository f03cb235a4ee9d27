#include "ptx/matrix/tensor_instruction.h"

#include <string>

#include "ptx/syntax/diagnostics.h"

namespace isobit::ptx {
namespace {

uint32_t field(uint32_t bits, int first, int count) { return bits >> first & ((1u << count) - 1); }

void expect(uint32_t bits, int first, int count, uint32_t value, const char* what) {
  const uint32_t got = field(bits, first, count);
  if (got == value) return;
  throw ExecutionFault{FindingKind::kTensorMemory, std::string("instruction descriptor: ") + what + ": expected " +
                                                       std::to_string(value) + ", got " + std::to_string(got)};
}

void check_n(int n, int step) {
  if (n >= step && n <= 256 && n % step == 0) return;
  throw ExecutionFault{FindingKind::kTensorMemory, "instruction descriptor: N: expected a multiple of " +
                                                       std::to_string(step) + " up to 256, got " + std::to_string(n)};
}

TensorInstruction common_fields(uint32_t bits) {
  expect(bits, 2, 1, 0, "sparsity");
  TensorInstruction x;
  x.negate_a = field(bits, 13, 1);
  x.negate_b = field(bits, 14, 1);
  x.a_mn_major = field(bits, 15, 1);
  x.b_mn_major = field(bits, 16, 1);
  x.n = static_cast<int>(field(bits, 17, 6)) * 8;
  x.m = static_cast<int>(field(bits, 24, 5)) * 16;
  return x;
}

}  // namespace

TensorInstruction f16_instruction(uint32_t bits) {
  TensorInstruction x = common_fields(bits);
  expect(bits, 0, 2, 0, "sparsity selector");
  expect(bits, 3, 1, 0, "saturation");
  expect(bits, 4, 2, 1, "type of D (fp32)");
  expect(bits, 6, 1, 0, "bit 6");
  const uint32_t a = field(bits, 7, 3);
  if (a > 1) expect(bits, 7, 3, 1, "type of A");
  expect(bits, 10, 3, a, "type of B");
  expect(bits, 23, 1, 0, "bit 23");
  expect(bits, 29, 3, 0, "bits 29 to 31");
  if (x.m != 64) expect(bits, 24, 5, 8, "M / 16");
  check_n(x.n, x.m == 64 ? 8 : 16);
  x.format = a == 1 ? MmaFormat::kBf16 : MmaFormat::kFp16;
  return x;
}

TensorInstruction nvfp4_instruction(uint32_t bits) {
  TensorInstruction x = common_fields(bits);
  expect(bits, 0, 2, 0, "bits 0 and 1");
  expect(bits, 3, 1, 0, "bit 3");
  expect(bits, 4, 2, 0, "scale id of B");
  expect(bits, 6, 1, 0, "bit 6");
  expect(bits, 7, 3, 1, "type of A (E2M1)");
  expect(bits, 10, 3, 1, "type of B (E2M1)");
  expect(bits, 15, 2, 0, "major modes (4-bit operands are K-major)");
  expect(bits, 23, 1, 0, "scale type (UE4M3)");
  expect(bits, 29, 2, 0, "scale id of A");
  expect(bits, 31, 1, 0, "K (64)");
  expect(bits, 24, 5, 8, "M / 16");
  check_n(x.n, 8);
  return x;
}

}  // namespace isobit::ptx
