// Which calls the block-scaled kernels take, and how they are launched, with mocked devices.
#include <gtest/gtest.h>

#include "nvfp4/test/scaled_dispatch.h"
#include "ops/nvfp4_linear/test/problem.h"

namespace isobit::nvfp4_linear::test {
namespace {

class Nvfp4LinearScaled : public isobit::test::ScaledDispatchTest<Problem> {
 protected:
  Nvfp4LinearScaled() : ScaledDispatchTest({.rows = 130, .columns = 288, .k = 64}) {}
};

TEST_F(Nvfp4LinearScaled, OnePersistentLaunch) { launches_once_persistently(); }
TEST_F(Nvfp4LinearScaled, Operands) { refuses_operands_that_the_matrix_unit_cannot_read(); }
TEST_F(Nvfp4LinearScaled, OtherDevices) { refuses_other_devices_of_the_range(); }
TEST_F(Nvfp4LinearScaled, OtherKernels) { runs_other_kernels_by_name_only(); }

}  // namespace
}  // namespace isobit::nvfp4_linear::test
