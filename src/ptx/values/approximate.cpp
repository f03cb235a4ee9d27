// Functions of the multi-function unit. A CPU cannot give their bits; where approximations are allowed it gives libm's.
#include <cmath>

#include "ptx/decode/families.h"
#include "ptx/engine/float_lanes.h"

namespace isobit::ptx {
namespace {

struct Exp2 {
  float operator()(float a) const { return std::exp2(a); }
};
struct Log2 {
  float operator()(float a) const { return std::log2(a); }
};
struct Sin {
  float operator()(float a) const { return std::sin(a); }
};
struct Cos {
  float operator()(float a) const { return std::cos(a); }
};
struct Tanh {
  float operator()(float a) const { return std::tanh(a); }
};
struct InverseSqrt {
  float operator()(float a) const { return 1.0f / std::sqrt(a); }
};

template <class Op>
Handler handler(Flush flush) {
  return flush.subnormals ? approximate<map_lanes<FloatOp<Op, true, false>, float, float>>
                          : approximate<map_lanes<FloatOp<Op, false, false>, float, float>>;
}

}  // namespace

void decode_approximate(Decoder& d) {
  d.require("approx");
  d.require("f32");
  const Flush flush = take_flush(d, Type::kF32);
  decode_uniform(d, Type::kF32, 1);
  const std::string_view name = d.opcode();
  d.out().handler = name == "ex2"    ? handler<Exp2>(flush)
                    : name == "lg2"  ? handler<Log2>(flush)
                    : name == "sin"  ? handler<Sin>(flush)
                    : name == "cos"  ? handler<Cos>(flush)
                    : name == "tanh" ? handler<Tanh>(flush)
                                     : handler<InverseSqrt>(flush);
}

}  // namespace isobit::ptx
