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
  int by_counts;
  int64_t rows, groups, weights[64];
} plan;

/* Kinds of equal rows: of each the first row, and how many there are; `arms` of rows, or NULL, where all have arm 0. */
typedef struct {
  const int32_t *heads, *counts, *arms;
  int64_t n;
} kinds;

static int is_of(const kinds *k, int64_t i, int arm) { return k->arms == NULL || k->arms[k->heads[i]] == arm; }

static int64_t cost_of(const plan *p) { return p->rows + GROUP * p->groups; }

/* A group for each number of equal rows of an arm; more groups than there is room for if there are so many. */
static plan plan_of_counts(const kinds *of, int arm, int64_t room) {
  plan p = {.by_counts = 1};
  for (int64_t i = 0; i < of->n; ++i) {
    if (!is_of(of, i, arm)) continue;
    int64_t count = of->counts[i], k = 0;
    ++p.rows;
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
static plan plan_of_bits(const kinds *of, int arm, int64_t room) {
  plan p = {.by_counts = 0};
  uint32_t used = 0;
  for (int64_t i = 0; i < of->n; ++i) {
    if (!is_of(of, i, arm)) continue;
    used |= (uint32_t)of->counts[i];
    p.rows += __builtin_popcount((uint32_t)of->counts[i]);
  }
  for (int bit = 0; bit < BITS; ++bit)
    if (used >> bit & 1) p.weights[p.groups++] = (int64_t)1 << bit;
  if (p.groups > room) p.groups = INT32_MAX;
  return p;
}

/* Puts the kinds of equal rows of an arm into the groups of a plan, from `found` on; where each group ends. */
static int64_t fill_groups(const plan *p, const kinds *of, int arm, int64_t found, int32_t *order, int64_t *ends) {
  int64_t next[64];
  memset(ends, 0, (size_t)p->groups * 8);
  int place[BITS] = {0}; /* of small numbers, or of bits: which group */
  for (int j = (int)p->groups - 1; j >= 0; --j) {
    int64_t key = p->by_counts ? p->weights[j] : __builtin_ctzll((uint64_t)p->weights[j]);
    if (key < BITS) place[key] = j;
  }
  for (int pass = 0; pass < 2; ++pass) { /* counts, then writes */
    for (int64_t i = 0; i < of->n; ++i) {
      if (!is_of(of, i, arm)) continue;
      uint32_t left = (uint32_t)of->counts[i];
      int j = 0;
      if (p->by_counts && left < BITS)
        j = place[left];
      else if (p->by_counts)
        while (p->weights[j] != left) ++j;
      do { /* one group, or one for each bit */
        if (!p->by_counts) j = place[__builtin_ctz(left)];
        if (pass == 0)
          ++ends[j];
        else
          order[next[j]++] = of->heads[i];
        left &= left - 1;
      } while (!p->by_counts && left);
    }
    for (int64_t j = 0; pass == 0 && j < p->groups; ++j) next[j] = found, ends[j] = found += ends[j];
  }
  return found;
}

/* All rows of an arm, from `found` on. */
static int64_t fill_rows(const int32_t *arms, int arm, int64_t n, int64_t found, int32_t *order) {
  for (int64_t row = 0; row < n; ++row)
    if (arms == NULL || arms[row] == arm) order[found++] = (int32_t)row;
  return found;
}

/* Of `g` kinds of equal rows, of which the first is row `heads` and there are `counts`: rows in groups. Those of group j
 * are order[starts[j]] to order[starts[j + 1] - 1], weigh weights[j] and have taken[j] in `arms`, which has a number below
 * 8 for each row, or, if `a` is 0, for none, which is 0; a row with one below 0 does nothing, and is in no group. `room`
 * is 64, for so many groups. `figures`: how many groups, how many rows are in them, whether equal rows are there once,
 * whether the rows are others or in another order, how many have 0 in `arms`, how many numbers there are in it.
 * If there are too few equal rows (or g is 0: too many kinds), groups have weight 1 and all `n` rows, in their order. */
ULAM_API int32_t ulam_weigh_rows(ulam_context *ctx, const int32_t *heads, const int32_t *counts, const int32_t *arms,
                                 int64_t a, int64_t n, int64_t g, int64_t room, int32_t *order, int64_t *starts, double *weights,
                                 int64_t *taken, int64_t *figures) {
  if (n > INT32_MAX)
    return ulam_fail(ctx, ULAM_FATAL,
                     "a loop has %lld rows, and layouts of the data are for at most %d: without layouts it runs",
                     (long long)n, INT32_MAX);
  memset(starts, 0, (size_t)(room + 1) * 8);
  memset(weights, 0, (size_t)room * 8);
  memset(taken, 0, (size_t)room * 8);
  int64_t rows_of[ARMS] = {0}, parts = 0, found = 0, groups = 0, idle = 0;
  if (a == 0) rows_of[0] = n;
  for (int64_t row = 0; row < a; ++row)
    if (arms[row] < 0)
      ++idle;
    else
      ++rows_of[arms[row]];
  for (int arm = 0; arm < ARMS; ++arm) parts += rows_of[arm] > 0;
  if (a == 0) arms = NULL;
  kinds of = {.heads = heads, .counts = counts, .arms = arms, .n = g};
  plan plans[ARMS];
  int64_t cost = 0;
  for (int arm = 0; arm < ARMS; ++arm) {
    if (!rows_of[arm]) continue;
    plan exact = plan_of_counts(&of, arm, room / parts), bits = plan_of_bits(&of, arm, room / parts);
    plans[arm] = cost_of(&exact) <= cost_of(&bits) ? exact : bits;
    cost += cost_of(&plans[arm]);
  }
  int is_worth = g > 0 && 3 * cost <= 2 * (n - idle);
  for (int arm = 0; arm < ARMS; ++arm) {
    if (!rows_of[arm]) continue;
    int64_t ends[64], count = is_worth ? plans[arm].groups : 1;
    if (is_worth)
      fill_groups(&plans[arm], &of, arm, found, order, ends);
    else
      ends[0] = fill_rows(arms, arm, n, found, order);
    for (int64_t j = 0; j < count; ++j) {
      if (ends[j] == found) continue;
      weights[groups] = is_worth ? (double)plans[arm].weights[j] : 1, taken[groups] = arm, starts[++groups] = found = ends[j];
    }
  }
  figures[0] = groups, figures[1] = found, figures[2] = is_worth, figures[3] = is_worth || parts > 1 || idle > 0;
  figures[4] = rows_of[0], figures[5] = parts;
  return ULAM_OK;
}
