// Sides of gradient_turns.py and against_stanli.py: call a compiled program through the C runtime, as the Python
// interface does, or a model of stanli, without Python in between.
#include "gradient_loop.hpp"

extern "C" {

// `run` is `ulam_run_gradient` of runtime/c/context.h; the other pointers are its arguments.
typedef int32_t (*run_gradient)(void *context, void *entry, void *bound, const double *theta, double *gradient,
                                int32_t jacobian);

double compiled_time(run_gradient run, void *context, void *entry, void *bound, const double *points, int64_t n_points,
                     int64_t dim, int64_t calls) {
  return time_gradients(
      [=](const double *theta, double *gradient, double *) { return run(context, entry, bound, theta, gradient, 1) == 0; },
      points, n_points, dim, calls);
}

// `run` is `stanli_grad` of stanli's library.
typedef int (*stanli_gradient)(void *model, const double *theta, double *value, double *gradient);

double stanli_time(stanli_gradient run, void *model, const double *points, int64_t n_points, int64_t dim,
                   int64_t calls) {
  return time_gradients(
      [=](const double *theta, double *gradient, double *value) { return run(model, theta, value, gradient) == 0; },
      points, n_points, dim, calls);
}
}
