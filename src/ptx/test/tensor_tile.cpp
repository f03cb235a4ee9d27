#include "ptx/test/tensor_tile.h"

#include <cmath>
#include <cstring>
#include <random>

#include "numerics/bf16.h"
#include "numerics/e2m1.h"
#include "numerics/e4m3.h"

namespace isobit::ptx::test {
namespace {

constexpr int kSteps = 4, kRowBytes = 128;  // of A and B, all four steps
constexpr size_t kOperandBytes = size_t{kTileM + kTileN} * kRowBytes, kScaleBytes = 512;

struct Elements {
  std::vector<uint8_t> codes;  // of A, then of B: nibbles, or bytes of bf16
  std::vector<uint8_t> a_scales, b_scales;
};

constexpr int kElements = 2 * kRowBytes;  // of a row of NVFP4
constexpr int kScales = kElements / 16;

Elements elements() {
  std::mt19937 random(7);
  Elements e;
  for (size_t i = 0; i < kOperandBytes; ++i) e.codes.push_back(static_cast<uint8_t>(random()));
  const auto scales = [&](int rows) {
    std::vector<uint8_t> s;
    for (int i = 0; i < rows * kScales; ++i)
      s.push_back(numerics::e4m3_from_float(std::ldexp(1.0f, static_cast<int>(random() % 4) - 2)));
    return s;
  };
  e.a_scales = scales(kTileM);
  e.b_scales = scales(kTileN);
  return e;
}

// Small integers, so that every sum is exact.
uint16_t bf16_of(const Elements& e, size_t index) {
  return numerics::Bf16::from_float(static_cast<float>(static_cast<int>(e.codes[index] % 17) - 8));
}

void swizzle_rows(std::vector<uint8_t>& bytes, size_t rows) {
  const std::vector<uint8_t> plain = bytes;
  for (size_t r = 0; r < rows; ++r) {
    for (size_t x = 0; x < kRowBytes; x += 16) {
      const size_t at = r * kRowBytes + x;
      std::memcpy(bytes.data() + (at ^ (r % 8) << 4), plain.data() + at, 16);
    }
  }
}

// Row k holds the 32 columns of B, in the 64-byte swizzle.
void turn_b(std::vector<uint8_t>& bytes) {
  constexpr size_t kFirst = size_t{kTileM} * kRowBytes, kColumnsBytes = 2 * kTileN;
  const std::vector<uint8_t> plain = bytes;
  for (size_t k = 0; k < kRowBytes / 2; ++k) {
    for (size_t n = 0; n < kTileN; ++n) {
      const size_t at = k * kColumnsBytes + 2 * n;
      std::memcpy(&bytes[kFirst + (at ^ (at >> 3 & 0x30))], &plain[kFirst + n * kRowBytes + 2 * k], 2);
    }
  }
}

// Row r of a step: lane r % 32, word r / 32.
void append_scales(std::vector<uint8_t>& to, const std::vector<uint8_t>& scales, int rows) {
  for (int step = 0; step < kSteps; ++step) {
    std::vector<uint8_t> block(kScaleBytes, 0x7F);  // NaN where there is no row
    for (int r = 0; r < rows; ++r)
      std::memcpy(&block[static_cast<size_t>(r % 32 * 16 + r / 32 * 4)],
                  &scales[static_cast<size_t>(r * kScales + step * 4)], 4);
    to.insert(to.end(), block.begin(), block.end());
  }
}

double product(const Elements& e, TileKind kind, int m, int n) {
  double sum = 0;
  const size_t a = static_cast<size_t>(m) * kRowBytes, b = static_cast<size_t>(kTileM + n) * kRowBytes;
  if (kind != TileKind::kNvfp4) {
    for (size_t k = 0; k < kRowBytes / 2; ++k)
      sum += static_cast<double>(numerics::Bf16::to_float(bf16_of(e, a + 2 * k))) *
             numerics::Bf16::to_float(bf16_of(e, b + 2 * k));
    return sum;
  }
  for (size_t k = 0; k < kElements; ++k) {
    const int shift = k % 2 ? 4 : 0;
    const float x = numerics::e2m1_to_float(static_cast<uint8_t>(e.codes[a + k / 2] >> shift & 15)) *
                    numerics::e4m3_to_float(e.a_scales[static_cast<size_t>(m) * kScales + k / 16]);
    const float y = numerics::e2m1_to_float(static_cast<uint8_t>(e.codes[b + k / 2] >> shift & 15)) *
                    numerics::e4m3_to_float(e.b_scales[static_cast<size_t>(n) * kScales + k / 16]);
    sum += static_cast<double>(x) * y;
  }
  return sum;
}

}  // namespace

std::vector<uint8_t> tile_input(TileKind kind) {
  const Elements e = elements();
  std::vector<uint8_t> bytes = e.codes;
  if (kind != TileKind::kNvfp4) {
    for (size_t i = 0; i < bytes.size(); i += 2) {
      const uint16_t x = bf16_of(e, i);
      std::memcpy(&bytes[i], &x, 2);
    }
  }
  if (kind == TileKind::kBf16ColumnsOfB) turn_b(bytes);
  swizzle_rows(bytes, kind == TileKind::kBf16ColumnsOfB ? kTileM : kTileM + kTileN);
  if (kind == TileKind::kNvfp4) {
    append_scales(bytes, e.a_scales, kTileM);
    append_scales(bytes, e.b_scales, kTileN);
  }
  return bytes;
}

std::vector<float> tile_expected(TileKind kind) {
  const Elements e = elements();
  std::vector<float> out;
  for (int turn = 1; turn <= kTileTurns; ++turn) {
    for (int m = 0; m < kTileM; ++m) {
      for (int n = 0; n < kTileN; ++n) out.push_back(static_cast<float>(turn * product(e, kind, m, n)));
    }
  }
  return out;
}

TileResult run_tile(const std::string& text, TileKind kind, const ScheduleCase& schedule) {
  TileResult result;
  auto parsed = Module::parse(text);
  if (const Error* error = std::get_if<Error>(&parsed)) {
    result.error = "line " + std::to_string(error->line) + ": " + error->message;
    return result;
  }
  MachineOptions options;
  options.schedule = schedule.schedule;
  options.seed = schedule.seed;
  options.check_races = true;
  Machine machine(options);
  const std::vector<uint8_t> input = tile_input(kind);
  const uint32_t bytes = static_cast<uint32_t>(input.size());
  DeviceBuffer in(machine, input.size(), true), out(machine, sizeof(float) * kTileTurns * kTileM * kTileN, false);
  std::memcpy(in.data(), input.data(), input.size());
  void *in_address = in.data(), *out_address = out.data();
  const void* parameters[] = {&in_address, &out_address, &bytes};
  result.report = machine.launch(std::get<Module>(parsed), "tile_product", {{1}, {128}, {1}, bytes}, parameters, 3);
  result.out.assign(out.as<float>(), out.as<float>() + out.size() / sizeof(float));
  return result;
}

}  // namespace isobit::ptx::test
