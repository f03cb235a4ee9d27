// A backward call and where it runs: the same operands on the CPU, in the interpreter and on a GPU, so that bytes can
// be compared.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/linear_logp/test/problem.h"

namespace isobit::linear_logp::test {

struct BackwardCase {
  Problem problem;
  std::vector<float> d_logp, d_lse, d_entropy;  // [N, K], [N], [N]; empty: absent
  isobit_dtype hidden_dtype = ISOBIT_BF16;      // of d_hidden; ISOBIT_NONE: not wanted
  isobit_dtype weight_dtype = ISOBIT_FP32;
  isobit_dtype bias_dtype = ISOBIT_NONE;
  bool accumulate = false;
  int64_t padding = 0;           // rows of weight beyond V
  int64_t weight_margin = 0;     // elements between rows of d_weight
  bool misaligned = false;       // hidden and weight start 2 bytes beyond a multiple of 16
  bool forward_outputs = false;  // logp, lse and entropy as well
};

// Random upstream gradients of logp and lse, distinct per row; some rows ignored, some targets outside the vocabulary.
BackwardCase random_case(const Shape& shape, uint64_t seed, float scale = 4.0f);

// Memory that kernels see.
class Place {
 public:
  virtual ~Place() = default;
  virtual int device_type() const = 0;
  virtual void* put(const void* host, size_t bytes) = 0;  // a copy
  virtual void* room(size_t bytes) = 0;                   // poisoned
  virtual void fetch(void* host, const void* place, size_t bytes) = 0;
};

// The CPU's.
std::unique_ptr<Place> host_place();

struct BackwardBytes {
  std::string d_hidden, d_weight, d_bias, logp, lse, entropy;
  bool operator==(const BackwardBytes&) const = default;
};

struct BackwardOptions {
  const char* kernel = nullptr;
  size_t workspace_bytes = 0;  // 0: recommended
  bool minimum = false;        // workspace
  bool saves = false;          // a call that saves, then the backward pass
  int32_t subtract_p = 0;
  void* stream = nullptr;
};

// The call's arguments in a place, outputs filled with a pattern; may be launched again and again.
class BackwardCall {
 public:
  BackwardCall(const BackwardCase& c, Place* place, const BackwardOptions& options);
  isobit_linear_logp_backward_args args;
  void* saved() const { return saved_; }
  BackwardBytes fetch() const;

 private:
  struct Written {
    std::string BackwardBytes::*to;
    void* data;
    size_t bytes;
  };
  isobit_tensor on_place(isobit_tensor view, void* data) const;
  void put_inputs(const BackwardCase& c);
  void make_outputs(const BackwardCase& c);
  isobit_tensor output(const isobit_tensor& view, std::string BackwardBytes::*to, int64_t elements, bool addend);

  Place* place_;
  void* saved_ = nullptr;
  std::vector<Written> written_;
};

// Runs it once; fails the test unless it is OK.
BackwardBytes run_backward(const BackwardCase& c, Place* place, const BackwardOptions& options = {});

// The CPU's answer.
BackwardBytes run_backward_on_cpu(const BackwardCase& c, const BackwardOptions& options = {});

}  // namespace isobit::linear_logp::test
