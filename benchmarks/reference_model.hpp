// What is the same for every reference model of against_stan.py: made into a precompiled header.
#ifndef ULAM_BENCHMARKS_REFERENCE_MODEL_HPP
#define ULAM_BENCHMARKS_REFERENCE_MODEL_HPP

#include <stan/model/model_header.hpp>

#include <stan/io/var_context.hpp>
#include <stan/model/gradient.hpp>

#include <memory>

// In reference_data.cpp.
std::unique_ptr<stan::io::var_context> read_data(const char *file);

namespace stan {
namespace model {

// Stands in for `model_base_crtp`, whose virtual functions would have the compiler make code for all uses of a model,
// while only gradients of the log density are measured here. It takes a half of the compile time away.
template <typename Model>
class gradient_only_base {
 public:
  explicit gradient_only_base(size_t num_params_r) : num_params_r__(num_params_r) {}
  size_t num_params_r() const { return num_params_r__; }
  void set_param_ranges() {}

 protected:
  size_t num_params_r__;
};

}  // namespace model
}  // namespace stan

#endif
