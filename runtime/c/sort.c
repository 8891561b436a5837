/* Sorting, stable, of reals and ints. Stan Functions Reference, "Sorting functions". */
#include <stdlib.h>
#include <string.h>

#include "dense.h"

/* Merge sort of the positions `order` by `before`; `spare` is of the same length. */
#define MERGE_SORT(function, type)                                                                      \
  static void function(const type *x, int64_t n, int descending, int32_t *order, int32_t *spare) {      \
    for (int64_t i = 0; i < n; ++i) order[i] = (int32_t)i;                                              \
    for (int64_t width = 1; width < n; width *= 2) {                                                    \
      for (int64_t start = 0; start < n; start += 2 * width) {                                          \
        int64_t middle = start + width < n ? start + width : n;                                         \
        int64_t end = start + 2 * width < n ? start + 2 * width : n;                                    \
        int64_t i = start, j = middle;                                                                  \
        for (int64_t k = start; k < end; ++k) {                                                         \
          int from_right = i == middle;                                                                 \
          if (i < middle && j < end) {                                                                  \
            type left = x[order[i]], right = x[order[j]];                                               \
            from_right = descending ? right > left : right < left;                                      \
          }                                                                                             \
          spare[k] = from_right ? order[j++] : order[i++];                                              \
        }                                                                                               \
      }                                                                                                 \
      memcpy(order, spare, (size_t)n * sizeof *order);                                                  \
    }                                                                                                   \
  }

MERGE_SORT(order_reals, double)
MERGE_SORT(order_ints, int32_t)

static int32_t check_nan(ulam_context *ctx, const char *name, const double *x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (isnan(x[i]))
      return ulam_fail(ctx, ULAM_REJECT, "%s: container argument[%lld] is nan, but must not be nan!", name,
                       (long long)(i + 1));
  return ULAM_OK;
}

/* out = sorted x; order[i] is the position, from 0, that out[i] came from. */
static int32_t sort_reals(ulam_context *ctx, const char *name, const double *x, int64_t n, int descending, double *out,
                          int32_t *order) {
  int32_t status = check_nan(ctx, name, x, n);
  if (status != ULAM_OK) return status;
  char *mark = ctx->arena_cursor;
  order_reals(x, n, descending, order, ulam_alloc(ctx, n * (int64_t)sizeof(int32_t)));
  for (int64_t i = 0; i < n; ++i) out[i] = x[order[i]];
  ulam_release(ctx, mark);
  return ULAM_OK;
}

ULAM_API int32_t ulam_sort_asc(ulam_context *ctx, const double *x, int64_t n, double *out, int32_t *order) {
  return sort_reals(ctx, "sort_asc", x, n, 0, out, order);
}

ULAM_API int32_t ulam_sort_desc(ulam_context *ctx, const double *x, int64_t n, double *out, int32_t *order) {
  return sort_reals(ctx, "sort_desc", x, n, 1, out, order);
}

ULAM_API void ulam_sort_pullback(ulam_context *ctx, const double *x, int64_t n, const double *out, const int32_t *order,
                                 double *x_adj, const double *out_adj) {
  (void)ctx, (void)x, (void)out;
  if (x_adj == NULL || out_adj == NULL) return;
  for (int64_t i = 0; i < n; ++i) x_adj[order[i]] += out_adj[i];
}

static void sort_ints(ulam_context *ctx, const int32_t *x, int64_t n, int descending, int32_t *out) {
  char *mark = ctx->arena_cursor;
  int32_t *order = ulam_alloc(ctx, n * (int64_t)sizeof(int32_t));
  order_ints(x, n, descending, order, ulam_alloc(ctx, n * (int64_t)sizeof(int32_t)));
  for (int64_t i = 0; i < n; ++i) out[i] = x[order[i]];
  ulam_release(ctx, mark);
}

ULAM_API void ulam_sort_asc_int(ulam_context *ctx, const int32_t *x, int64_t n, int32_t *out) {
  sort_ints(ctx, x, n, 0, out);
}

ULAM_API void ulam_sort_desc_int(ulam_context *ctx, const int32_t *x, int64_t n, int32_t *out) {
  sort_ints(ctx, x, n, 1, out);
}

/* Positions from 1. */
static int32_t indices_of_reals(ulam_context *ctx, const char *name, const double *x, int64_t n, int descending,
                                int32_t *out) {
  int32_t status = check_nan(ctx, name, x, n);
  if (status != ULAM_OK) return status;
  char *mark = ctx->arena_cursor;
  order_reals(x, n, descending, out, ulam_alloc(ctx, n * (int64_t)sizeof(int32_t)));
  for (int64_t i = 0; i < n; ++i) ++out[i];
  ulam_release(ctx, mark);
  return ULAM_OK;
}

ULAM_API int32_t ulam_sort_indices_asc(ulam_context *ctx, const double *x, int64_t n, int32_t *out) {
  return indices_of_reals(ctx, "sort_indices_asc", x, n, 0, out);
}

ULAM_API int32_t ulam_sort_indices_desc(ulam_context *ctx, const double *x, int64_t n, int32_t *out) {
  return indices_of_reals(ctx, "sort_indices_desc", x, n, 1, out);
}

static void indices_of_ints(ulam_context *ctx, const int32_t *x, int64_t n, int descending, int32_t *out) {
  char *mark = ctx->arena_cursor;
  order_ints(x, n, descending, out, ulam_alloc(ctx, n * (int64_t)sizeof(int32_t)));
  for (int64_t i = 0; i < n; ++i) ++out[i];
  ulam_release(ctx, mark);
}

ULAM_API void ulam_sort_indices_asc_int(ulam_context *ctx, const int32_t *x, int64_t n, int32_t *out) {
  indices_of_ints(ctx, x, n, 0, out);
}

ULAM_API void ulam_sort_indices_desc_int(ulam_context *ctx, const int32_t *x, int64_t n, int32_t *out) {
  indices_of_ints(ctx, x, n, 1, out);
}
