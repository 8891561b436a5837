/* What is linear in the numbers of a row, of all rows that row_forms.c leaves. Where numbers may cancel, in twice the
 * digits: what they leave is a number as others are. Else columns are less their means, which are put together first.
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

#define INLINE static inline __attribute__((always_inline))

typedef struct {
  const number *table;
  const number *second; /* second numbers; NULL if there are none, but means */
  const number *means;
  int64_t rows, own, span;
  form_plan plan;
} forms;

static forms forms_of(const number *table, int64_t size, const int64_t *plan, int64_t values, int64_t columns,
                      int64_t rows, int64_t own, int64_t span) {
  const number *behind = table + reduced_forms_size(rows, columns);
  int is_twofold = size == twofold_forms_size(rows, columns);
  return (forms){table, is_twofold ? behind : NULL, is_twofold ? NULL : behind, rows, own, span,
                 form_plan_of(plan, values)};
}

/* How many rows have a shared column: those behind are 0. */
INLINE int64_t rows_of_column(const forms *f, int64_t q) {
  return f->own * f->span + (q < f->own ? 0 : q - f->own + 1);
}

/* Adds a column of some rows, times coefficients: each row's own, `by` 1 apart, or the same, 0 apart. */
INLINE void add_entry(const forms *f, int64_t at, const number *coefficients, int by, piece *sums, piece *rests) {
  piece all = *sums, rest = *rests;
  for (int i = 0; i < ROWS; ++i) {
    number sum = OF_ROW(all, i), less = OF_ROW(rest, i);
    if (f->second)
      increase_by_product(&sum, &less, (twofold){value_of(f->table[at + i]), value_of(f->second[at + i])},
                          coefficients[by * i]);
    else
      sum += f->table[at + i] * coefficients[by * i];
    OF_ROW(all, i) = sum, OF_ROW(rest, i) = less;
  }
  *sums = all, *rests = rest;
}

/* What means make of the coefficients of all rows in a value. */
INLINE number centre_of(const forms *f, int64_t value, const number *shared) {
  number found = 0;
  for (int64_t e = f->plan.shared.starts[value]; e < f->plan.shared.starts[value + 1]; ++e)
    found += f->means[f->plan.shared.columns[e]] * shared[e];
  return found;
}

/* A value of `count` rows from one on: columns before `first` are 0 in these; `mine`: coefficients of their groups. If
 * the first column is not 0 there, it has what means make of the value, if there are any. */
INLINE void put_value(const forms *f, int64_t value, int64_t row, int64_t count, int64_t first, const number *shared,
                      const number *mine, number *found) {
  piece sums = {0}, rests = {0};
  if (f->means && first == 0) {
    number centre = centre_of(f, value, shared);
    add_entry(f, row, &centre, 0, &sums, &rests);
    first = 1;
  }
  for (int64_t e = f->plan.shared.starts[value]; e < f->plan.shared.starts[value + 1]; ++e) {
    int64_t q = f->plan.shared.columns[e];
    if (q >= first) add_entry(f, q * f->rows + row, shared + e, 0, &sums, &rests);
  }
  for (int64_t e = f->plan.keyed.starts[value]; mine && e < f->plan.keyed.starts[value + 1]; ++e)
    add_entry(f, f->plan.keyed.columns[e] * f->rows + row, mine + e * f->span, 1, &sums, &rests);
  for (int i = 0; i < count; ++i) found[(row + i) * f->plan.values + value] = OF_ROW(sums, i) + OF_ROW(rests, i);
}

/* All values of `count` rows from one on; where `by` is 1, each of these begins a column behind the one before. */
INLINE void put_values(const forms *f, int64_t row, int64_t count, int64_t first, int64_t by, const number *shared,
                       const number *mine, number *found) {
  for (int64_t i = 0; i < count; i += ROWS) {
    int64_t left = count - i < ROWS ? count - i : ROWS;
    for (int64_t v = 0; v < f->plan.values; ++v)
      put_value(f, v, row + i, left, first + by * i, shared, mine ? mine + i : NULL, found);
  }
}

/* Those of the rows that are a triangle. */
INLINE void put_shared_rows(const forms *f, const number *shared, number *found) {
  int64_t of_groups = f->own * f->span;
  put_values(f, of_groups, f->rows - of_groups, f->own, 1, shared, NULL, found);
}

TWOFOLD_CLONES_OF_NUMBERS static void put_all_twofold(forms f, const number *shared, const number *keyed,
                                                      number *found) {
  f.means = NULL;
  for (int64_t p = 0; p < f.own; ++p) put_values(&f, p * f.span, f.span, p, 0, shared, keyed, found);
  put_shared_rows(&f, shared, found);
}

/* y += x b. */
INLINE void add_multiple(int64_t count, const number *restrict x, number b, number *restrict y) {
  for (int64_t i = 0; i < count; ++i) y[i] += x[i] * b;
}

/* y += x z. */
INLINE void add_products(int64_t count, const number *restrict x, const number *restrict z, number *restrict y) {
  for (int64_t i = 0; i < count; ++i) y[i] += x[i] * z[i];
}

/* A value of the rows of groups, a column, which begins as zeros; `centres`: room for what means make of it, for each
 * group, whose first row has the number 1. */
INLINE void add_value(const forms *f, int64_t value, const number *shared, const number *keyed,
                      number *restrict centres, number *restrict column) {
  number centre = centre_of(f, value, shared);
  for (int64_t e = f->plan.shared.starts[value]; e < f->plan.shared.starts[value + 1]; ++e) {
    int64_t q = f->plan.shared.columns[e];
    if (q > 0) add_multiple(f->own * f->span, f->table + q * f->rows, shared[e], column);
  }
  for (int64_t g = 0; g < f->span; ++g) centres[g] = centre;
  for (int64_t e = f->plan.keyed.starts[value]; e < f->plan.keyed.starts[value + 1]; ++e) {
    int64_t q = f->plan.keyed.columns[e];
    const number *mine = keyed + e * f->span;
    add_multiple(f->span, mine, f->means[q], centres);
    for (int64_t p = 0; p <= q && q > 0; ++p)
      add_products(f->span, f->table + q * f->rows + p * f->span, mine, column + p * f->span);
  }
  add_products(f->span, f->table, centres, column);
}

/* Rows of groups are many: column by column. */
CLONES_OF_NUMBERS static void put_all_centred(ulam_context *ctx, forms f, const number *shared, const number *keyed,
                                              number *found) {
  f.second = NULL;
  int64_t of_groups = f.own * f.span;
  char *mark = ctx->arena_cursor;
  number *column = f.own ? ulam_alloc(ctx, (of_groups + f.span) * (int64_t)sizeof *column) : NULL;
  for (int64_t v = 0; v < f.plan.values && f.own; ++v) {
    dense_zero(column, of_groups);
    add_value(&f, v, shared, keyed, column + of_groups, column);
    for (int64_t r = 0; r < of_groups; ++r) found[r * f.plan.values + v] = column[r];
  }
  ulam_release(ctx, mark);
  put_shared_rows(&f, shared, found);
}

ULAM_API void KERNEL(form_values)(ulam_context *ctx, const number *table, const int64_t *plan, const number *shared,
                                  const number *keyed, int64_t t, int64_t p, int64_t s, int64_t k, int64_t values,
                                  int64_t columns, int64_t rows, int64_t own, int64_t span, number *found) {
  (void)p, (void)s, (void)k;
  forms f = forms_of(table, t, plan, values, columns, rows, own, span);
  if (f.second)
    put_all_twofold(f, shared, keyed, found);
  else
    put_all_centred(ctx, f, shared, keyed, found);
}

/* Rows that have the number 1: the first of each group, or of all. */
INLINE int64_t first_rows(const forms *f) { return f->own ? f->span : 1; }

/* The product of two columns; those behind the first `count` numbers, up to ROWS, are 0 in one of them. */
INLINE number product_of_columns(int64_t count, const number *a, const number *b) {
  number sums[ROWS] = {0};
  for (int64_t i = 0; i < count; i += ROWS)
    for (int l = 0; l < ROWS; ++l) sums[l] += a[i + l] * b[i + l];
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

/* Adds what the adjoints of a value, a column of all rows and some zeros, give to coefficients; `centres`: room for those
 * of what means make of it. */
INLINE void pull_value_back(const forms *f, int64_t value, const number *restrict column, number *restrict centres,
                            number *restrict shared_adj, number *restrict keyed_adj) {
  number centre = 0;
  for (int64_t i = 0; i < first_rows(f); ++i) centres[i] = f->table[i] * column[i], centre += centres[i];
  for (int64_t e = f->plan.shared.starts[value]; shared_adj && e < f->plan.shared.starts[value + 1]; ++e) {
    int64_t q = f->plan.shared.columns[e];
    if (f->means) shared_adj[e] += f->means[q] * centre;
    if (q > 0 || f->second)
      shared_adj[e] += product_of_columns(rows_of_column(f, q), f->table + q * f->rows, column);
  }
  for (int64_t e = f->plan.keyed.starts[value]; keyed_adj && e < f->plan.keyed.starts[value + 1]; ++e) {
    int64_t q = f->plan.keyed.columns[e];
    number *mine = keyed_adj + e * f->span;
    if (f->means) add_multiple(f->span, centres, f->means[q], mine);
    for (int64_t p = 0; p <= q && (q > 0 || f->second); ++p)
      add_products(f->span, f->table + q * f->rows + p * f->span, column + p * f->span, mine);
  }
}

CLONES_OF_NUMBERS static void pull_all_back(ulam_context *ctx, const forms *f, const number *found_adj,
                                            number *shared_adj, number *keyed_adj) {
  char *mark = ctx->arena_cursor;
  int64_t values = f->plan.values, height = f->rows + ROWS; /* of a column, with zeros behind */
  number *columns = ulam_alloc(ctx, (values * height + first_rows(f)) * (int64_t)sizeof *columns);
  for (int64_t v = 0; v < values; ++v) {
    for (int64_t r = 0; r < f->rows; ++r) columns[v * height + r] = found_adj[r * values + v];
    for (int64_t i = 0; i < ROWS; ++i) columns[v * height + f->rows + i] = 0;
  }
  for (int64_t v = 0; v < values; ++v)
    pull_value_back(f, v, columns + v * height, columns + values * height, shared_adj, keyed_adj);
  ulam_release(ctx, mark);
}

/* Tables are data. */
ULAM_API void KERNEL(form_values_pullback)(ulam_context *ctx, const number *table, const int64_t *plan,
                                           const number *shared, const number *keyed, int64_t t, int64_t p, int64_t s,
                                           int64_t k, int64_t values, int64_t columns, int64_t rows, int64_t own,
                                           int64_t span, const number *found, number *table_adj, number *shared_adj,
                                           number *keyed_adj, const number *found_adj) {
  (void)shared, (void)keyed, (void)p, (void)s, (void)k, (void)found, (void)table_adj;
  if (found_adj == NULL) return;
  forms f = forms_of(table, t, plan, values, columns, rows, own, span);
  pull_all_back(ctx, &f, found_adj, shared_adj, keyed_adj);
}
