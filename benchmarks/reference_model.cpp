// A model translated by stanc, compiled with Stan Math, behind a C interface: the reference of against_stan.py.
//
// Compiled with -DREFERENCE_MODEL='"file"' naming stanc's output. Log density without constants, with the Jacobian.
// `reference_model.hpp` is included by the command line, precompiled.
#include "gradient_loop.hpp"

#include <cstring>

#define USING_R  // leaves out `new_model`, which needs the real base class
#define final
#define model_base_crtp gradient_only_base
#include REFERENCE_MODEL
#undef model_base_crtp
#undef final

namespace {

struct reference {
  stan_model model;
  Eigen::VectorXd theta;
  Eigen::VectorXd gradient;

  explicit reference(stan::io::var_context &data) : model(data, 1234, nullptr) {}

  bool at(const double *point, double *out, double *value) {
    theta = Eigen::Map<const Eigen::VectorXd>(point, theta.size());
    try {
      stan::model::gradient(model, theta, *value, gradient, nullptr);
    } catch (const std::exception &problem) {
      return false;
    }
    std::memcpy(out, gradient.data(), sizeof(double) * static_cast<size_t>(gradient.size()));
    return true;
  }
};

}  // namespace

// The rest is hidden, as in a program: it can be inlined.
#pragma GCC visibility push(default)
extern "C" {

// Null, and the text of the error in `message`, if the data are refused.
void *reference_new(const char *data_file, char *message, int64_t message_size) {
  try {
    auto *made = new reference(*read_data(data_file));
    made->theta.resize(static_cast<Eigen::Index>(made->model.num_params_r()));
    return made;
  } catch (const std::exception &problem) {
    std::strncpy(message, problem.what(), static_cast<size_t>(message_size) - 1);
    return nullptr;
  }
}

int64_t reference_dim(void *model) { return static_cast<reference *>(model)->theta.size(); }

int32_t reference_gradient(void *model, const double *theta, double *gradient, double *value) {
  return static_cast<reference *>(model)->at(theta, gradient, value) ? 0 : 1;
}

double reference_time(void *model, const double *points, int64_t n_points, int64_t dim, int64_t calls) {
  auto *self = static_cast<reference *>(model);
  return time_gradients(
      [self](const double *theta, double *gradient, double *value) { return self->at(theta, gradient, value); },
      points, n_points, dim, calls);
}
}
#pragma GCC visibility pop
