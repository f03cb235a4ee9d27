// The table of kernels, with mocked devices.
#include "nvfp4/test/dispatch.h"

#include <gtest/gtest.h>

#include "ops/nvfp4_geglu/dispatch.h"
#include "ops/nvfp4_geglu/test/problem.h"

namespace isobit::nvfp4_geglu::test {
namespace {

class Nvfp4GegluDispatch : public isobit::test::DispatchTest<Problem> {
 protected:
  Nvfp4GegluDispatch() : DispatchTest({.rows = 130, .width = 144, .k = 64}) {}
};

TEST_F(Nvfp4GegluDispatch, MmaSync) { mma_sync_launches_once_without_workspace(); }
TEST_F(Nvfp4GegluDispatch, Wgmma) { wgmma_unpacks_and_multiplies(); }
TEST_F(Nvfp4GegluDispatch, WgmmaLimits) { wgmma_names_its_limits(); }
TEST_F(Nvfp4GegluDispatch, WgmmaStride) { wgmma_names_the_copy_engines_stride(); }
TEST_F(Nvfp4GegluDispatch, OldDevices) { old_devices_are_refused(); }
TEST(Nvfp4GegluTable, ContractsNameTheRule) { isobit::test::expect_contracts_to_name_the_rule(kernel_at); }

}  // namespace
}  // namespace isobit::nvfp4_geglu::test
