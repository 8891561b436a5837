/* Pieces of large programs (passes/pieces.py): a program calls others, whose parameters are values of its own.
 *
 * The table: how many pieces there are; of each the addresses of its function and of its table of bound data, how many
 * of the values it takes, and which.
 */
#include <string.h>

#include "context.h"

typedef int32_t gradient_function(ulam_context *, void *, const double *, double *, int32_t, double *);

/* Value `k` has the elements from `places[k]` to `places[k + 1]`. */
ULAM_API int32_t ulam_evaluate_pieces(ulam_context *ctx, const double *values, const int64_t *places, int64_t n,
                                      int64_t m, int64_t table, double *value, double *gradient) {
  (void)m;
  const int64_t *entry = (const int64_t *)(intptr_t)table;
  double sum = 0;
  memset(gradient, 0, (size_t)n * sizeof(double));
  for (int64_t pieces = *entry++; pieces > 0; --pieces) {
    gradient_function *function = (gradient_function *)(intptr_t)entry[0];
    void *bound = (void *)(intptr_t)entry[1];
    const int64_t taken = entry[2], *which = entry + 3;
    int64_t size = 0;
    for (int64_t i = 0; i < taken; ++i) size += places[which[i] + 1] - places[which[i]];
    char *mark = ctx->arena_cursor;
    double *theta = ulam_doubles(ctx, size), *own = ulam_doubles(ctx, size);
    if (!theta || !own) return ULAM_FATAL;
    double part = 0, *next = theta;
    for (int64_t i = 0; i < taken; ++i) {
      const int64_t begin = places[which[i]], count = places[which[i] + 1] - begin;
      memcpy(next, values + begin, (size_t)count * sizeof(double));
      next += count;
    }
    const int32_t status = function(ctx, bound, theta, own, 0, &part);
    if (status) return status;
    sum += part;
    const double *slope = own;
    for (int64_t i = 0; i < taken; ++i) {
      const int64_t end = places[which[i] + 1];
      for (int64_t k = places[which[i]]; k < end; ++k) gradient[k] += *slope++;
    }
    ulam_release(ctx, mark);
    entry = which + taken;
  }
  *value = sum;
  return ULAM_OK;
}

ULAM_API void ulam_evaluate_pieces_pullback(ulam_context *ctx, const double *values, const int64_t *places, int64_t n,
                                            int64_t m, int64_t table, const double *value, const double *gradient,
                                            double *adjoint, const double *adjoint_of_value,
                                            const double *adjoint_of_gradient) {
  (void)ctx, (void)values, (void)places, (void)m, (void)table, (void)value, (void)adjoint_of_gradient;
  if (!adjoint || !adjoint_of_value) return;
  const double factor = *adjoint_of_value;
  for (int64_t i = 0; i < n; ++i) adjoint[i] += factor * gradient[i];
}
