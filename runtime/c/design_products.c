/* Products of a matrix of data and coefficients. Where most columns are mostly 0, what is not 0 is found when data are
 * bound, and evaluations read that alone.
 *
 * Entry (i, c) of the matrix is x[offsets[c] + i * stride], for rows i from low to high - 1. Columns with many entries
 * are read where they are: all, if the matrix is not sparse. Of the others a row has a list: columns, and values unless
 * all of these are 1. Rows of equally many entries, as blocks of indicators give them, are found by their number alone.
 *
 * A zero times what is not finite is NaN, so coefficients, or adjoints, that are not finite go through all entries. Rows
 * may also have nothing but entries, as those of a sparse matrix: then no matrix is there, and no zeros. */
#include <math.h>
#include <string.h>

#include "dense.h"

/* The head of a design; the offsets of its columns and the numbers of those that are read where they are follow. Of
 * LISTED entries there is no matrix, and nothing follows. */
enum { LOW, ROWS, STRIDE, COLUMNS, WHOLE, PER_ROW, ONES, LISTED, HEAD };

/* What the kernels below tell of a design. */
enum { OUTCOME, F_ROWS, F_COLUMNS, F_ENTRIES, F_WHOLE, F_BYTES, DESIGN_SIZE, INDEX_SIZE, VALUES_SIZE, FIGURES };
enum { TAKEN, NOT_SPARSE, TOO_MANY };

/* Measured, in ns: an entry of a column that is read whole, one of a list, a row, both directions. */
static const double WHOLE_COST = 0.2, ENTRY_COST = 1.6, ROW_COST = 1.0, WORTH = 0.75;

enum { BLOCK = 512 };

/* ------------------------------------------------------------------------------------------------ when data are bound */

/* Widens a range of rows, from 0 and 0, by another one. */
ULAM_API void ulam_sparse_range(ulam_context *ctx, const int64_t *known, int64_t *range, int64_t first, int64_t end) {
  (void)ctx, (void)known;
  if (end <= first) return;
  int empty = range[1] <= range[0];
  if (empty || first < range[0]) range[0] = first;
  if (empty || end > range[1]) range[1] = end;
}

ULAM_CLONES static int64_t count_entries(const double *restrict x, int64_t stride, int64_t n) {
  int64_t found = 0;
  if (stride == 1)
    for (int64_t i = 0; i < n; ++i) found += x[i] != 0;
  else
    for (int64_t i = 0; i < n; ++i) found += x[i * stride] != 0;
  return found;
}

static int is_listed(int64_t entries, int64_t rows) { return (double)entries * ENTRY_COST < (double)rows * WHOLE_COST; }

/* How many entries of each column are not 0, whether that makes the design one to be kept without zeros, and the sizes
 * of what is then kept. */
ULAM_API void ulam_sparse_columns(ulam_context *ctx, const double *x, const int64_t *offsets, int64_t k, int64_t stride,
                                  const int64_t *range, int64_t *entries, int64_t *figures) {
  (void)ctx;
  int64_t low = range[0], rows = range[1] > range[0] ? range[1] - range[0] : 0, all = 0, listed = 0, whole = 0;
  memset(entries, 0, (size_t)k * 8);
  memset(figures, 0, FIGURES * 8);
  figures[F_ROWS] = rows, figures[F_COLUMNS] = k;
  figures[DESIGN_SIZE] = HEAD + k;
  if (rows >= INT32_MAX || k >= INT32_MAX) {
    figures[OUTCOME] = TOO_MANY;
    return;
  }
  for (int64_t first = 0; first < rows; first += BLOCK) {
    int64_t n = rows - first < BLOCK ? rows - first : BLOCK;
    for (int64_t c = 0; c < k; ++c) entries[c] += count_entries(x + offsets[c] + (low + first) * stride, stride, n);
  }
  for (int64_t c = 0; c < k; ++c) {
    all += entries[c];
    if (is_listed(entries[c], rows))
      listed += entries[c];
    else
      ++whole;
  }
  double cost = (double)rows * ROW_COST + (double)listed * ENTRY_COST + (double)(whole * rows) * WHOLE_COST;
  figures[F_ENTRIES] = all, figures[F_WHOLE] = whole;
  if (listed > INT32_MAX - rows - 2)
    figures[OUTCOME] = TOO_MANY;
  else if (cost >= WORTH * (double)(k * rows) * WHOLE_COST)
    figures[OUTCOME] = NOT_SPARSE;
  if (figures[OUTCOME] != TAKEN) return;
  int ones = 1;
  for (int64_t c = 0; c < k && ones; ++c) {
    const double *column = x + offsets[c] + low * stride;
    if (is_listed(entries[c], rows))
      for (int64_t i = 0; i < rows && ones; ++i) ones = column[i * stride] == 0 || column[i * stride] == 1;
  }
  figures[DESIGN_SIZE] = HEAD + k + whole;
  figures[INDEX_SIZE] = rows + 1 + listed;
  figures[VALUES_SIZE] = ones ? 0 : listed;
  figures[F_BYTES] = 8 * (figures[DESIGN_SIZE] + figures[VALUES_SIZE]) + 4 * figures[INDEX_SIZE];
}

/* Where the rows of a design begin among its entries, and their columns; values. */
ULAM_API void ulam_sparse_rows(ulam_context *ctx, const double *x, const int64_t *offsets, int64_t k, int64_t stride,
                               const int64_t *range, const int64_t *entries, const int64_t *figures, int64_t *design,
                               int64_t d, int32_t *index, int64_t n, double *values, int64_t m) {
  (void)ctx, (void)n, (void)d;
  int64_t low = range[0], rows = figures[F_ROWS], *whole = design + HEAD + k;
  design[LOW] = low, design[ROWS] = rows, design[STRIDE] = stride, design[COLUMNS] = design[WHOLE] = k;
  design[LISTED] = 0;
  memcpy(design + HEAD, offsets, (size_t)k * 8);
  if (figures[OUTCOME] != TAKEN) return;
  int32_t *columns = index + rows + 1;
  for (int64_t c = 0; c < k; ++c)
    if (!is_listed(entries[c], rows)) *whole++ = c;
  int64_t per_row = -2; /* -2: there is no row yet, -1: rows differ */
  index[0] = 0;
  for (int64_t first = 0; first < rows; first += BLOCK) { /* of all columns, as caches hold them */
    int64_t end = rows - first < BLOCK ? rows : first + BLOCK;
    int32_t next[BLOCK] = {0};
    for (int64_t c = 0; c < k; ++c) {
      const double *column = x + offsets[c] + (low + first) * stride;
      for (int64_t i = 0; i < end - first && is_listed(entries[c], rows); ++i) next[i] += column[i * stride] != 0;
    }
    for (int64_t i = first; i < end; ++i) {
      int32_t count = next[i - first];
      per_row = per_row == -2 || per_row == count ? count : -1;
      next[i - first] = index[i], index[i + 1] = index[i] + count;
    }
    for (int64_t c = 0; c < k; ++c) {
      const double *column = x + offsets[c] + (low + first) * stride;
      for (int64_t i = 0; i < end - first && is_listed(entries[c], rows); ++i) {
        if (column[i * stride] == 0) continue;
        if (m) values[next[i]] = column[i * stride];
        columns[next[i]++] = (int32_t)c;
      }
    }
  }
  design[WHOLE] = figures[F_WHOLE], design[PER_ROW] = rows ? per_row : 0, design[ONES] = m == 0;
}

/* A design of `rows` rows whose entries are all that there is: where those of each row begin, and at the end the last ones
 * end, their columns, and their values. Besides, how many bytes they take. */
ULAM_API int32_t ulam_listed_rows(ulam_context *ctx, const int32_t *index, int64_t n, const double *values, int64_t m,
                                  int64_t rows, int64_t *design) {
  memset(design, 0, (HEAD + 2) * 8);
  if (n > INT32_MAX)
    return ulam_fail(ctx, ULAM_FATAL, "rows have %lld entries, and layouts of the data are for at most %d: without layouts "
                     "they are added up", (long long)m, INT32_MAX);
  const int32_t *columns = index + rows + 1;
  int64_t last = -1, per_row = rows ? index[1] - index[0] : 0, ones = 1;
  for (int64_t e = 0; e < m; ++e) {
    if (columns[e] > last) last = columns[e];
    ones = ones && values[e] == 1;
  }
  for (int64_t i = 0; i < rows && per_row >= 0; ++i)
    if (index[i + 1] - index[i] != per_row) per_row = -1;
  design[ROWS] = rows, design[COLUMNS] = last + 1, design[PER_ROW] = per_row, design[ONES] = ones, design[LISTED] = 1;
  design[HEAD] = m, design[HEAD + 1] = 4 * n + 8 * (m + HEAD + 2);
  return ULAM_OK;
}

/* ------------------------------------------------------------------------------------------------ evaluations */

typedef struct {
  const double *x; /* of the first row */
  const int64_t *design, *whole;
  const int32_t *starts, *columns;
  const double *values;
  int64_t n, stride, per_row;
} some_rows;

static int is_dense(const int64_t *design) { return !design[LISTED] && design[WHOLE] == design[COLUMNS]; }

static some_rows rows_of(const double *x, const int64_t *design, const int32_t *index, const double *values,
                         int64_t first, int64_t n) {
  some_rows rows = {.x = x + first * design[STRIDE], .design = design, .n = n, .stride = design[STRIDE]};
  if (is_dense(design)) return rows;
  rows.whole = design + HEAD + design[COLUMNS], rows.per_row = design[PER_ROW];
  rows.starts = index + first - design[LOW], rows.columns = index + design[ROWS] + 1;
  rows.values = design[ONES] ? NULL : values;
  return rows;
}

/* What is read where it is: all columns, or those with many entries. */
static dense_columns whole_columns(const some_rows *rows, int all) {
  dense_columns columns = {.x = rows->x, .offsets = rows->design + HEAD, .rows = rows->n, .stride = rows->stride};
  columns.numbers = all ? NULL : rows->whole;
  columns.count = all ? rows->design[COLUMNS] : rows->design[WHOLE];
  return columns;
}

enum { LANES = 8 };

ULAM_CLONES static int all_finite(int64_t n, const double *y) {
  double sums[LANES] = {0}, sum = 0;
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int64_t lane = 0; lane < LANES; ++lane) sums[lane] += 0 * y[i + lane];
  for (; i < n; ++i) sum += 0 * y[i];
  for (int64_t lane = 0; lane < LANES; ++lane) sum += sums[lane];
  return sum == 0;
}

static inline double of_row(const int32_t *columns, const double *values, int64_t from, int64_t to, const double *b) {
  double sum = 0;
  if (values)
    for (int64_t e = from; e < to; ++e) sum += values[e] * b[columns[e]];
  else
    for (int64_t e = from; e < to; ++e) sum += b[columns[e]];
  return sum;
}

static inline void to_row(const int32_t *columns, const double *values, int64_t from, int64_t to, double y, double *b) {
  if (values)
    for (int64_t e = from; e < to; ++e) b[columns[e]] += values[e] * y;
  else
    for (int64_t e = from; e < to; ++e) b[columns[e]] += y;
}

static void add_listed(const some_rows *rows, const double *b, double *y) {
  const double *values = rows->values;
  int64_t p = rows->per_row, at = rows->starts[0];
  const int32_t *columns = rows->columns + at;
  if (p == 1 && !values)
    for (int64_t i = 0; i < rows->n; ++i) y[i] += b[columns[i]];
  else if (p == 2 && !values)
    for (int64_t i = 0; i < rows->n; ++i) y[i] += b[columns[2 * i]] + b[columns[2 * i + 1]];
  else if (p == 3 && !values)
    for (int64_t i = 0; i < rows->n; ++i) y[i] += b[columns[3 * i]] + b[columns[3 * i + 1]] + b[columns[3 * i + 2]];
  else if (p >= 0)
    for (int64_t i = 0; i < rows->n; ++i) y[i] += of_row(rows->columns, values, at + i * p, at + i * p + p, b);
  else
    for (int64_t i = 0; i < rows->n; ++i)
      y[i] += of_row(rows->columns, values, rows->starts[i], rows->starts[i + 1], b);
}

static void pull_back_listed(const some_rows *rows, const double *y, double *b) {
  const double *values = rows->values;
  int64_t p = rows->per_row, at = rows->starts[0];
  const int32_t *columns = rows->columns + at;
  if (p == 1 && !values)
    for (int64_t i = 0; i < rows->n; ++i) b[columns[i]] += y[i];
  else if (p >= 0)
    for (int64_t i = 0; i < rows->n; ++i) to_row(rows->columns, values, at + i * p, at + i * p + p, y[i], b);
  else
    for (int64_t i = 0; i < rows->n; ++i) to_row(rows->columns, values, rows->starts[i], rows->starts[i + 1], y[i], b);
}

enum { MOST_SIDES = 2 };

/* y := the product of m rows of a design, from row `first`, and b, of each side. */
static void multiply(int sides, const double *const *b, const double *x, const int64_t *design, const int32_t *index,
                     const double *values, int64_t first, int64_t m, double *const *y) {
  int all = is_dense(design);
  for (int side = 0; side < sides && !all && !design[LISTED]; ++side) all = !all_finite(design[COLUMNS], b[side]);
  for (int64_t block = 0; block < m; block += BLOCK) {
    some_rows rows = rows_of(x, design, index, values, first + block, m - block < BLOCK ? m - block : BLOCK);
    dense_columns columns = whole_columns(&rows, all);
    double *out[MOST_SIDES];
    for (int side = 0; side < sides; ++side) out[side] = y[side] + block;
    dense_add_columns(&columns, sides, b, out);
    for (int side = 0; side < sides && !all; ++side) add_listed(&rows, b[side], out[side]);
  }
}

static void pull_back(int sides, const double *x, const int64_t *design, const int32_t *index, const double *values,
                      int64_t first, int64_t m, double *const *b_adj, const double *const *y_adj) {
  for (int64_t block = 0; block < m; block += BLOCK) {
    some_rows rows = rows_of(x, design, index, values, first + block, m - block < BLOCK ? m - block : BLOCK);
    int all = is_dense(design);
    const double *slopes[MOST_SIDES];
    for (int side = 0; side < sides; ++side) slopes[side] = y_adj[side] + block;
    for (int side = 0; side < sides && !all && !design[LISTED]; ++side) all = !all_finite(rows.n, slopes[side]);
    dense_columns columns = whole_columns(&rows, all);
    dense_dot_columns(&columns, sides, slopes, b_adj);
    for (int side = 0; side < sides && !all; ++side) pull_back_listed(&rows, slopes[side], b_adj[side]);
  }
}

ULAM_API void ulam_design_product(ulam_context *ctx, const double *b, int64_t k, const double *x, const int64_t *design,
                                  const int32_t *index, const double *values, int64_t first, int64_t m, double *y) {
  (void)ctx, (void)k;
  multiply(1, &b, x, design, index, values, first, m, &y);
}

ULAM_API void ulam_design_product_pullback(ulam_context *ctx, const double *b, int64_t k, const double *x,
                                           const int64_t *design, const int32_t *index, const double *values,
                                           int64_t first, int64_t m, const double *y, double *b_adj, double *x_adj,
                                           double *values_adj, const double *y_adj) {
  (void)ctx, (void)b, (void)k, (void)y, (void)x_adj, (void)values_adj;
  if (b_adj && y_adj) pull_back(1, x, design, index, values, first, m, &b_adj, &y_adj);
}

/* Of two vectors b, a and c: what is read of the design serves both. */
ULAM_API void ulam_design_products(ulam_context *ctx, const double *a, const double *c, int64_t k, const double *x,
                                   const int64_t *design, const int32_t *index, const double *values, int64_t first,
                                   int64_t m, double *y, double *z) {
  (void)ctx, (void)k;
  multiply(2, (const double *[]){a, c}, x, design, index, values, first, m, (double *[]){y, z});
}

ULAM_API void ulam_design_products_pullback(ulam_context *ctx, const double *a, const double *c, int64_t k,
                                            const double *x, const int64_t *design, const int32_t *index,
                                            const double *values, int64_t first, int64_t m, const double *y,
                                            const double *z, double *a_adj, double *c_adj, double *x_adj,
                                            double *values_adj, const double *y_adj, const double *z_adj) {
  (void)ctx, (void)a, (void)c, (void)k, (void)y, (void)z, (void)x_adj, (void)values_adj;
  double *adjoints[MOST_SIDES];
  const double *slopes[MOST_SIDES];
  int sides = 0;
  if (a_adj && y_adj) adjoints[sides] = a_adj, slopes[sides++] = y_adj;
  if (c_adj && z_adj) adjoints[sides] = c_adj, slopes[sides++] = z_adj;
  pull_back(sides, x, design, index, values, first, m, adjoints, slopes);
}
