// The timed loop of gradient_turns.py: all sides run this same code.
//
// `Gradient` is one evaluation: `bool operator()(const double *theta, double *gradient, double *value)`.
#ifndef ULAM_BENCHMARKS_GRADIENT_LOOP_HPP
#define ULAM_BENCHMARKS_GRADIENT_LOOP_HPP

#include <cstdint>
#include <ctime>
#include <vector>

// CPU time of this thread: what other processes take does not count.
inline double thread_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Seconds of CPU time for `calls` gradients at points that change from call to call; negative if one failed.
template <typename Gradient>
double time_gradients(Gradient &&gradient_at, const double *points, int64_t n_points, int64_t dim, int64_t calls) {
  std::vector<double> gradient(static_cast<size_t>(dim) + 1);
  double value = 0;
  bool fine = true;
  int64_t point = 0;
  const double start = thread_seconds();
  for (int64_t i = 0; i < calls; i++) {
    fine &= gradient_at(points + point * dim, gradient.data(), &value);
    if (++point == n_points) point = 0;
  }
  const double seconds = thread_seconds() - start;
  return fine ? seconds : -1;
}

#endif
