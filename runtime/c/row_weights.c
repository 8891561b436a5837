/* Weights that data give rows: of rows that are equal but for their weights, one is left, with the sum of these.
 *
 * Rows are only put together if their weights are of one kind, below 0, 0, or above: where what is multiplied is not
 * finite, the sum of the products is then that of the weights' sum. */
#include <math.h>

#include "dense.h"

static const double LARGE = 1e290; /* so many times as there are rows, it is finite */

/* The kind of each row's weight, in a column (see layouts.c); `known`: 1, or -1 if one is no number, or too large. */
ULAM_API void ulam_weight_kinds(ulam_context *ctx, const double *x, int64_t n, int64_t row, int32_t *kinds,
                                int64_t *known) {
  (void)ctx;
  *known = 1;
  for (int64_t i = 0; i < n; ++i) {
    double weight = x[i * row];
    if (!(fabs(weight) < LARGE)) *known = -1;
    kinds[i] = (weight > 0) - (weight < 0);
  }
}

/* The sum of the weights of each of `g` groups, and for the number of its rows 1: it is the sum that counts. */
ULAM_API void ulam_sum_weights(ulam_context *ctx, const double *x, int64_t n, int64_t row, const int32_t *groups, int64_t g,
                               double *sums, int32_t *counts) {
  (void)ctx;
  for (int64_t k = 0; k < g; ++k) sums[k] = 0, counts[k] = 1;
  for (int64_t i = 0; i < n && g; ++i) sums[groups[i]] += x[i * row];
}

/* The mean of a column over each of `g` groups of rows with weights of one kind, by sums in twice the digits; of groups
 * whose weights are all 0, what their last row has. */
ULAM_API void ulam_group_means(ulam_context *ctx, const double *x, int64_t n, int64_t row, const double *w, int64_t by,
                               const int32_t *groups, int64_t g, double *means) {
  char *mark = ctx->arena_cursor;
  double *weights = ulam_alloc(ctx, g * 8), *low = ulam_alloc(ctx, g * 8);
  for (int64_t k = 0; k < g; ++k) means[k] = weights[k] = low[k] = 0;
  for (int64_t i = 0; i < n && g; ++i) {
    int32_t k = groups[i];
    double weight = w[i * by], term = weight * x[i * row], sum = means[k] + term, part = sum - means[k];
    low[k] += (means[k] - (sum - part)) + (term - part);
    means[k] = weights[k] || weight ? sum : x[i * row];
    weights[k] += weight;
  }
  for (int64_t k = 0; k < g; ++k) {
    if (!weights[k]) continue;
    double sum = means[k] + low[k];
    means[k] = (isfinite(sum) ? sum : means[k]) / weights[k];
  }
  ulam_release(ctx, mark);
}

/* A column of rows in an order: the numbers of the groups that begin with them, or their own. */
ULAM_API void ulam_take_of_groups(ulam_context *ctx, const double *x, const int32_t *order, int64_t n, int64_t row,
                                  int64_t t, const int32_t *heads, const double *numbers, int64_t g, int64_t are_taken,
                                  double *out) {
  (void)ctx, (void)t;
  for (int64_t i = 0; i < n; ++i) {
    int64_t low = 0, high = g;
    while (are_taken && low + 1 < high) { /* groups are numbered as they begin */
      int64_t middle = (low + high) / 2;
      if (heads[middle] <= order[i])
        low = middle;
      else
        high = middle;
    }
    out[i] = are_taken ? numbers[low] : x[order[i] * row];
  }
}
