/* What is linear in the numbers of a row, of all rows that row_forms.c leaves: in twice the digits, for numbers may
 * cancel here; what they leave is a number as others are.
 *
 * Coefficients are those of all rows (`shared`), or of groups (`keyed`: an entry has `span` of them; a few numbers that
 * do not count stand behind the last). The table and the plan are as reduced_forms.h has them. */
#include "dense.h"
#include "reduced_forms.h"
#include "twofold.h"

#ifdef ULAM_DUAL
#define CLONES_OF_NUMBERS
typedef struct {
  number at[ROWS];
} piece;
#define OF_ROW(x, i) ((x).at[i])
#else
#define CLONES_OF_NUMBERS ULAM_CLONES
typedef double piece __attribute__((vector_size(ROWS * sizeof(double)), aligned(8)));
#define OF_ROW(x, i) ((x)[i])
#endif

typedef struct {
  const number *table;
  int64_t second; /* how far second numbers are behind the first */
  int64_t rows, own, span;
  form_plan plan;
} forms;

static forms forms_of(const number *table, int64_t size, const int64_t *plan, int64_t values, int64_t rows, int64_t own,
                      int64_t span) {
  return (forms){table, size / 2, rows, own, span, form_plan_of(plan, values)};
}

/* Adds a column of some rows, times coefficients: each row's own, `by` 1 apart, or the same, 0 apart. */
TWOFOLD void add_entry(const number *high, const number *low, const number *coefficients, int by, piece *sums,
                       piece *rests) {
  piece all = *sums, rest = *rests;
  for (int i = 0; i < ROWS; ++i) {
    number sum = OF_ROW(all, i), less = OF_ROW(rest, i);
    increase_by_product(&sum, &less, (twofold){value_of(high[i]), value_of(low[i])}, coefficients[by * i]);
    OF_ROW(all, i) = sum, OF_ROW(rest, i) = less;
  }
  *sums = all, *rests = rest;
}

/* A value of `count` rows from one on: columns before `first` are 0 in these; `mine`: coefficients of their groups. */
TWOFOLD void put_value(const forms *f, int64_t value, int64_t row, int64_t count, int64_t first, const number *shared,
                       const number *mine, number *found) {
  piece sums = {0}, rests = {0};
  for (int64_t e = f->plan.shared.starts[value]; e < f->plan.shared.starts[value + 1]; ++e) {
    const number *high = f->table + f->plan.shared.columns[e] * f->rows + row;
    if (f->plan.shared.columns[e] >= first) add_entry(high, high + f->second, shared + e, 0, &sums, &rests);
  }
  for (int64_t e = f->plan.keyed.starts[value]; mine && e < f->plan.keyed.starts[value + 1]; ++e) {
    const number *high = f->table + f->plan.keyed.columns[e] * f->rows + row;
    add_entry(high, high + f->second, mine + e * f->span, 1, &sums, &rests);
  }
  for (int i = 0; i < count; ++i) found[(row + i) * f->plan.values + value] = OF_ROW(sums, i) + OF_ROW(rests, i);
}

/* All values of `count` rows from one on; where `by` is 1, each of these begins a column behind the one before. */
TWOFOLD void put_values(const forms *f, int64_t row, int64_t count, int64_t first, int64_t by, const number *shared,
                        const number *mine, number *found) {
  for (int64_t i = 0; i < count; i += ROWS) {
    int64_t left = count - i < ROWS ? count - i : ROWS;
    for (int64_t v = 0; v < f->plan.values; ++v)
      put_value(f, v, row + i, left, first + by * i, shared, mine ? mine + i : NULL, found);
  }
}

TWOFOLD_CLONES_OF_NUMBERS static void put_all(const forms *f, const number *shared, const number *keyed, number *found) {
  int64_t of_groups = f->own * f->span;
  for (int64_t p = 0; p < f->own; ++p) put_values(f, p * f->span, f->span, p, 0, shared, keyed, found);
  put_values(f, of_groups, f->rows - of_groups, f->own, 1, shared, NULL, found);
}

ULAM_API void KERNEL(form_values)(ulam_context *ctx, const number *table, const int64_t *plan, const number *shared,
                                  const number *keyed, int64_t t, int64_t p, int64_t s, int64_t k, int64_t values,
                                  int64_t rows, int64_t own, int64_t span, number *found) {
  (void)ctx, (void)p, (void)s, (void)k;
  forms f = forms_of(table, t, plan, values, rows, own, span);
  put_all(&f, shared, keyed, found);
}

/* The product of two columns; those behind the first `count` numbers, up to ROWS, are 0 in one of them. */
static inline __attribute__((always_inline)) number product_of_columns(int64_t count, const number *a, const number *b) {
  number sums[ROWS] = {0};
  for (int64_t i = 0; i < count; i += ROWS)
    for (int l = 0; l < ROWS; ++l) sums[l] += a[i + l] * b[i + l];
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

/* Adds what the adjoints of a value, a column of all rows and some zeros, give to coefficients. */
CLONES_OF_NUMBERS static void pull_value_back(const forms *f, int64_t value, const number *restrict column,
                                              number *restrict shared_adj, number *restrict keyed_adj) {
  for (int64_t e = f->plan.shared.starts[value]; shared_adj && e < f->plan.shared.starts[value + 1]; ++e) {
    int64_t q = f->plan.shared.columns[e], count = f->own * f->span + (q < f->own ? 0 : q - f->own + 1);
    shared_adj[e] += product_of_columns(count, f->table + q * f->rows, column);
  }
  for (int64_t e = f->plan.keyed.starts[value]; keyed_adj && e < f->plan.keyed.starts[value + 1]; ++e) {
    int64_t q = f->plan.keyed.columns[e];
    for (int64_t p = 0; p <= q; ++p) {
      const number *restrict numbers = f->table + q * f->rows + p * f->span, *restrict adjoints = column + p * f->span;
      for (int64_t g = 0; g < f->span; ++g) keyed_adj[e * f->span + g] += numbers[g] * adjoints[g];
    }
  }
}

/* Tables are data. */
ULAM_API void KERNEL(form_values_pullback)(ulam_context *ctx, const number *table, const int64_t *plan,
                                           const number *shared, const number *keyed, int64_t t, int64_t p, int64_t s,
                                           int64_t k, int64_t values, int64_t rows, int64_t own, int64_t span,
                                           const number *found, number *table_adj, number *shared_adj,
                                           number *keyed_adj, const number *found_adj) {
  (void)shared, (void)keyed, (void)p, (void)s, (void)k, (void)found, (void)table_adj;
  if (found_adj == NULL) return;
  forms f = forms_of(table, t, plan, values, rows, own, span);
  char *mark = ctx->arena_cursor;
  number *column = ulam_alloc(ctx, (rows + ROWS) * (int64_t)sizeof *column);
  for (int64_t i = 0; i < ROWS; ++i) column[rows + i] = 0;
  for (int64_t v = 0; v < values; ++v) {
    for (int64_t r = 0; r < rows; ++r) column[r] = found_adj[r * values + v];
    pull_value_back(&f, v, column, shared_adj, keyed_adj);
  }
  ulam_release(ctx, mark);
}
