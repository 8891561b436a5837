#include <math.h>

#include "chain.h"
#include "pcg64dxsm.h"

static void fill_nan(double *values, int64_t count) {
  for (int64_t i = 0; i < count; ++i) values[i] = NAN;
}

int32_t ulam_draw_quantities(ulam_context *ctx, void *entry, void *bound, const uint64_t generator[4], int64_t n,
                             int64_t width, int64_t count, const double *points, const uint64_t *numbers,
                             double *values, int32_t *statuses) {
  int32_t status = ULAM_OK;
  for (int64_t i = 0; i < count && status != ULAM_STOPPED; ++i) {
    double *row = values + i * width;
    ulam_pcg own;
    ulam_pcg_begin(&own, generator);
    ulam_pcg_jump(&own, numbers[i]);
    ctx->rng = &own.interface;
    fill_nan(row, width);
    status = statuses[i] = ulam_run_constrain(ctx, entry, bound, points + i * n, row, 1, 1);
    for (int32_t beyond = 1; beyond >= 0 && status != ULAM_OK && status != ULAM_STOPPED; --beyond) {
      fill_nan(row, width);
      status = ulam_run_constrain(ctx, entry, bound, points + i * n, row, beyond, 0);
    }
    if (status == ULAM_STOPPED) statuses[i] = ULAM_STOPPED;
    ctx->rng = NULL;
  }
  return status == ULAM_STOPPED ? ULAM_STOPPED : ULAM_OK;
}
