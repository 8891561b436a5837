/* Rows of data in groups of one weight, for loops that take equal rows once. See layouts.c for what is equal. */
#include <string.h>

#include "dense.h"

/* Element (r, c) of n x k as out[c * n + r]: the rows of a nest of loops one behind the other. */
ULAM_API void ulam_flatten_reals(ulam_context *ctx, const double *x, int64_t n, int64_t k, int64_t row, int64_t column,
                                 double *out) {
  (void)ctx;
  for (int64_t c = 0; c < k; ++c)
    for (int64_t r = 0; r < n; ++r) out[c * n + r] = x[r * row + c * column];
}

ULAM_API void ulam_flatten_ints(ulam_context *ctx, const int32_t *x, int64_t n, int64_t k, int64_t row, int64_t column,
                                int32_t *out) {
  (void)ctx;
  for (int64_t c = 0; c < k; ++c)
    for (int64_t r = 0; r < n; ++r) out[c * n + r] = x[r * row + c * column];
}

/* What a group costs besides its rows, in rows. */
enum { GROUP = 10, BITS = 32, ARMS = 8 };

typedef struct {
  int64_t rows, groups, weights[64];
} plan;

static int64_t cost_of(const plan *p) { return p->rows + GROUP * p->groups; }

/* A group for each number of equal rows; more groups than there is room for if there are so many. */
static plan plan_of_counts(const double *counts, int64_t g, int64_t room) {
  plan p = {.rows = g};
  for (int64_t i = 0; i < g; ++i) {
    int64_t count = (int64_t)counts[i], k = 0;
    while (k < p.groups && p.weights[k] != count) ++k;
    if (k < p.groups) continue;
    if (p.groups == room) {
      p.groups = INT32_MAX;
      return p;
    }
    p.weights[p.groups++] = count;
  }
  return p;
}

/* A group for each bit that some number of equal rows has: a row is in as many as its number has bits. */
static plan plan_of_bits(const double *counts, int64_t g) {
  plan p = {.rows = 0};
  uint64_t used = 0;
  for (int64_t i = 0; i < g; ++i) {
    uint64_t count = (uint64_t)counts[i];
    used |= count;
    for (; count; count &= count - 1) ++p.rows;
  }
  for (int bit = 0; bit < BITS; ++bit)
    if (used >> bit & 1) p.weights[p.groups++] = (int64_t)1 << bit;
  return p;
}

static int is_in(int64_t count, int64_t weight, int by_counts) {
  return by_counts ? count == weight : (count & weight) != 0;
}

/* Of `g` kinds of equal rows, of which the first is row `heads` and there are `counts`: rows in groups. Those of group j
 * are order[starts[j]] to order[starts[j + 1] - 1], weigh weights[j] and have taken[j] in `arms`, which has a number below
 * 8 for each row, or, if `a` is 0, for none, which is 0; `room` is 64, for so many groups. `figures`: how many groups, how many rows are in them, whether equal
 * rows are there once, whether the order is another one, how many rows have 0 in `arms`, how many numbers there are in it.
 * If there are too few equal rows (or g is 0: too many kinds), groups have weight 1 and all `n` rows, in their order. */
ULAM_API int32_t ulam_weigh_rows(ulam_context *ctx, const int32_t *heads, const double *counts, const int32_t *arms,
                                 int64_t a, int64_t n, int64_t g, int64_t room, int32_t *order, int64_t *starts, double *weights,
                                 int64_t *taken, int64_t *figures) {
  if (n > INT32_MAX)
    return ulam_fail(ctx, ULAM_FATAL,
                     "a loop has %lld rows, and layouts of the data are for at most %d: without layouts it runs",
                     (long long)n, INT32_MAX);
  memset(starts, 0, (size_t)(room + 1) * 8);
  memset(weights, 0, (size_t)room * 8);
  memset(taken, 0, (size_t)room * 8);
  int64_t rows_of[ARMS] = {0}, parts = 0, found = 0, groups = 0;
  if (a == 0) rows_of[0] = n;
  for (int64_t row = 0; row < a; ++row) ++rows_of[arms[row]];
  for (int arm = 0; arm < ARMS; ++arm) parts += rows_of[arm] > 0;
  plan exact = plan_of_counts(counts, g, parts > 1 ? room / parts : room), bits = plan_of_bits(counts, g);
  if (bits.groups * parts > room) bits.groups = INT32_MAX;
  int by_counts = cost_of(&exact) <= cost_of(&bits);
  const plan *p = by_counts ? &exact : &bits;
  int is_worth = g > 0 && 3 * (cost_of(p) + (parts - 1) * GROUP * p->groups) <= 2 * n;
  for (int arm = 0; arm < ARMS; ++arm) {
    for (int64_t j = 0; j < (!rows_of[arm] ? 0 : is_worth ? p->groups : 1); ++j) {
      int64_t begin = found, weight = is_worth ? p->weights[j] : 1;
      if (is_worth) {
        for (int64_t i = 0; i < g; ++i)
          if ((a == 0 || arms[heads[i]] == arm) && is_in((int64_t)counts[i], weight, by_counts)) order[found++] = heads[i];
      } else {
        for (int64_t row = 0; row < n; ++row)
          if (a == 0 || arms[row] == arm) order[found++] = (int32_t)row;
      }
      if (found == begin) continue;
      weights[groups] = (double)weight, taken[groups] = arm, starts[++groups] = found;
    }
  }
  figures[0] = groups, figures[1] = found, figures[2] = is_worth, figures[3] = is_worth || parts > 1;
  figures[4] = rows_of[0], figures[5] = parts;
  return ULAM_OK;
}
