// A call of the room in the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "ops/linear_logp/test/problem.h"
#include "ptx/runtime/emulation.h"

namespace isobit::linear_logp::test {

// Moves the memory of a call onto the emulated device; outputs come back with fetch().
class Call {
 public:
  Call(ptx::EmulatedRuntime* device, const Problem& problem, const char* kernel)
      : device_(device), args_(problem.args()) {
    args_.kernel = kernel;
    upload(&args_.hidden, problem.hidden.data(), problem.hidden.size() * 2);
    upload(&args_.weight, problem.weight.data(), problem.weight.size() * 2);
    upload(&args_.target, problem.target.data(), problem.target.size() * 8);
    upload(&args_.bias, problem.bias.data(), problem.bias.size() * 4);
    upload(&args_.temperature, problem.temperature.data(), problem.temperature.size() * 4);
  }

  isobit_linear_logp_args& args() { return args_; }

  void attach(Outputs* outputs) {
    outputs->attach(&args_);
    for (isobit_tensor* view :
         {&args_.logp, &args_.lse, &args_.entropy, &args_.rank, &args_.target_logit, &args_.top_id, &args_.top_logp}) {
      if (view->dtype == ISOBIT_NONE) continue;
      const size_t bytes = static_cast<size_t>(view->shape[0] * (view->rank == 2 ? view->shape[1] : 1)) * 4;
      written_.push_back({view->data, bytes, buffers_.size()});
      buffers_.push_back(device_->allocate(bytes));
      place(view);
    }
  }

  void* allocate(size_t bytes) {
    buffers_.push_back(device_->allocate(bytes));
    return buffers_.back().data();
  }

  // The smallest workspace, or one for all rows at once.
  void take_workspace(bool recommended = false) {
    size_t minimum = 0;
    size_t enough = 0;
    ASSERT_EQ(isobit_linear_logp_workspace(&args_, &minimum, &enough), ISOBIT_OK) << isobit_last_error();
    args_.workspace_bytes = recommended ? enough : minimum;
    args_.workspace = allocate(args_.workspace_bytes);
  }

  void fetch() const {
    for (const Written& w : written_) std::memcpy(w.host, buffers_[w.buffer].data(), w.bytes);
  }

 private:
  struct Written {
    void* host;
    size_t bytes;
    size_t buffer;
  };

  void upload(isobit_tensor* view, const void* data, size_t bytes) {
    if (view->dtype == ISOBIT_NONE) return;
    buffers_.push_back(device_->upload(data, bytes));
    place(view);
  }
  void place(isobit_tensor* view) const {
    view->data = buffers_.back().data();
    view->device_type = ISOBIT_CUDA;
  }

  ptx::EmulatedRuntime* device_;
  isobit_linear_logp_args args_;
  std::vector<ptx::DeviceBuffer> buffers_;
  std::vector<Written> written_;
};

inline void expect_clean(const ptx::EmulatedRuntime& device, const std::string& what) {
  EXPECT_TRUE(device.report().ok()) << what << "\n" << device.report().text();
}

inline Problem with_options(const Shape& shape, uint64_t seed) {
  Problem problem = random_problem(shape, seed, 6.0f);
  for (int64_t v = 0; v < shape.vocab; ++v) problem.bias.push_back(0.01f * static_cast<float>(v % 301 - 150));
  for (int64_t n = 0; n < shape.rows; ++n) problem.temperature.push_back(0.5f + 0.1f * static_cast<float>(n % 11));
  problem.softcap = 8.0f;
  return problem;
}

inline void compare_emulated(const std::string& folder, const Problem& problem, unsigned wanted,
                             std::initializer_list<const char*> kernels) {
  const Outputs expected = run(problem, wanted);
  ptx::for_each_schedule(folder, {.multiprocessors = 3}, [&](ptx::EmulatedRuntime& device, const ptx::ScheduleCase& c) {
    for (const char* kernel : kernels) {
      const std::string what = std::string(kernel) + ", " + c.name;
      Call call(&device, problem, kernel);
      Outputs found(problem, wanted);
      call.attach(&found);
      call.take_workspace();
      ASSERT_EQ(isobit_linear_logp(&call.args(), nullptr), ISOBIT_OK) << what << isobit_last_error();
      call.fetch();
      expect_clean(device, what);
      for (int64_t row = 0; row < expected.rows; ++row) {
        ASSERT_EQ(expected.row_bytes(row), found.row_bytes(row))
            << what << ", row " << row << ": logp " << expected.logp_at(row) << " / " << found.logp_at(row);
      }
    }
  });
}

// One run under the first schedule.
inline Outputs run_emulated(const std::string& folder, const Problem& problem, unsigned wanted, const char* kernel) {
  ptx::EmulatedRuntime device(folder, {.multiprocessors = 3});
  const ScopedRuntime scope(&device);
  Call call(&device, problem, kernel);
  Outputs found(problem, wanted);
  call.attach(&found);
  call.take_workspace();
  EXPECT_EQ(isobit_linear_logp(&call.args(), nullptr), ISOBIT_OK) << isobit_last_error();
  call.fetch();
  expect_clean(device, kernel);
  return found;
}

}  // namespace isobit::linear_logp::test
