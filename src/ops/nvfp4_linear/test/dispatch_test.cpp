// The table of kernels, with mocked devices.
#include "nvfp4/test/dispatch.h"

#include <gtest/gtest.h>

#include "ops/nvfp4_linear/dispatch.h"
#include "ops/nvfp4_linear/test/problem.h"

namespace isobit::nvfp4_linear::test {
namespace {

class Nvfp4LinearDispatch : public isobit::test::DispatchTest<Problem> {
 protected:
  Nvfp4LinearDispatch() : DispatchTest({.rows = 130, .columns = 300, .k = 64}) {}
};

TEST_F(Nvfp4LinearDispatch, MmaSync) { mma_sync_launches_once_without_workspace(); }
TEST_F(Nvfp4LinearDispatch, Wgmma) { wgmma_unpacks_and_multiplies(); }
TEST_F(Nvfp4LinearDispatch, WgmmaLimits) { wgmma_names_its_limits(); }
TEST_F(Nvfp4LinearDispatch, WgmmaStride) { wgmma_names_the_copy_engines_stride(); }
TEST_F(Nvfp4LinearDispatch, OldDevices) { old_devices_are_refused(); }
TEST(Nvfp4LinearTable, ContractsNameTheRule) { isobit::test::expect_contracts_to_name_the_rule(kernel_at); }

}  // namespace
}  // namespace isobit::nvfp4_linear::test
