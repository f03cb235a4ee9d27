// Which calls the block-scaled kernels take, and how they are launched, with mocked devices.
#include <gtest/gtest.h>

#include "nvfp4/test/scaled_dispatch.h"
#include "ops/nvfp4_geglu/test/problem.h"

namespace isobit::nvfp4_geglu::test {
namespace {

class Nvfp4GegluScaled : public isobit::test::ScaledDispatchTest<Problem> {
 protected:
  Nvfp4GegluScaled() : ScaledDispatchTest({.rows = 130, .width = 144, .k = 64}) {}
};

TEST_F(Nvfp4GegluScaled, OnePersistentLaunch) { launches_once_persistently(); }
TEST_F(Nvfp4GegluScaled, Operands) { refuses_operands_that_the_matrix_unit_cannot_read(); }
TEST_F(Nvfp4GegluScaled, OtherDevices) { refuses_other_devices_of_the_range(); }
TEST_F(Nvfp4GegluScaled, OtherKernels) { runs_other_kernels_by_name_only(); }

TEST_F(Nvfp4GegluScaled, Outputs) {
  refused([](Args& a) { move(a.out.codes, 4); }, "out.codes: expected an address aligned to 8 bytes", shape_);
  refused([](Args& a) { a.out.codes.stride[0] += 4; }, "out.codes: expected stride[0] a multiple of 8, got 76", shape_);
  refused([](Args& a) { move(a.out.scales, 2); }, "out.scales: expected an address aligned to 4 bytes", shape_);
}

}  // namespace
}  // namespace isobit::nvfp4_geglu::test
