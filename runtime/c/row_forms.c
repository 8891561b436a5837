/* Rows of data of which only the sum of quadratic forms is needed, reduced once, when data are bound.
 *
 * A quadratic form of a row is that of its numbers, which are `columns`, the first of them 1. With X all rows, and R the
 * triangle for which R' R = X' X, the sum of any quadratic form over the rows of X is that over the rows of R, which are
 * as many as there are columns.
 *
 * Where coefficients belong to a group of the row, by a key, the first `own` columns are those that they multiply, with
 * the number 1: rows of a group become as many, of which rotations take these columns out of its other rows; what is left
 * of all rows becomes a triangle of the other columns.
 *
 * Rows come twice: the first time gives means, the second time R for numbers less their means, computed where these are
 * no larger than they. Evaluations put what the means are to each row of R together with its first number. Memory is
 * that of the result, and of a block of rows. */
#include "reflections.h"

/* Why rows are not reduced; passes/loops/form_binding.py has the words. */
enum { NOT_FINITE = 1, TOO_FEW_ROWS = 2, CANCELS = 3 };

static const double LESS_WORK = 1.25, TOO_MUCH = 1e3, CONSTANT = 1e12;

typedef struct __attribute__((may_alias)) {
  int64_t turns; /* how often rows come: read by compiled code, whenever they are to come again */
  int64_t turn, columns, rows, refused, held;
  int64_t own, low, span; /* columns of groups; the least key, and how many there are from it on */
  double *triangle; /* as many rows as columns, but for those of groups */
  double *rounded;  /* what additions to the triangle have rounded away; at first, what those to the means have */
  double *means;    /* that of the first column is 0 */
  double *norms;    /* of numbers less their means, squared */
  double *block;    /* a column of BLOCK for each column */
  double *groups, *groups_rounded; /* `own` rows for each key */
  int64_t *keys;    /* of the rows of the block */
} forms;

_Static_assert(sizeof(forms) <= 18 * sizeof(int64_t), "as library/kernels.py has it");

static int64_t shared_columns(const forms *f) { return f->columns - f->own; }

static int64_t rows_left(const forms *f) { return f->span * f->own + shared_columns(f); }

static int is_less_work(const forms *f) { return LESS_WORK * (double)rows_left(f) <= (double)f->rows; }

ULAM_API void ulam_forms_begin(ulam_context *ctx, int64_t *state, int64_t columns, int64_t rows, int64_t own) {
  forms f = {.turns = 2, .columns = columns, .rows = rows, .own = own, .span = own > 0};
  if (!is_less_work(&f)) {
    f.refused = TOO_FEW_ROWS, f.turns = 0;
    memcpy(state, &f, sizeof f);
    return;
  }
  int64_t shared = shared_columns(&f);
  f.span = 0;
  f.triangle = zeros(ctx, shared * shared);
  f.rounded = zeros(ctx, shared * shared > columns ? shared * shared : columns);
  f.means = zeros(ctx, columns);
  f.norms = zeros(ctx, columns);
  f.block = zeros(ctx, columns * BLOCK);
  f.keys = ulam_alloc(ctx, BLOCK * (int64_t)sizeof *f.keys);
  memcpy(state, &f, sizeof f);
}

/* The first time: sums of the numbers of the block. */
static void add_up(forms *f) {
  for (int64_t q = 1; q < f->columns; ++q)
    for (int64_t i = 0; i < f->held; ++i) increase(f->means + q, f->rounded + q, f->block[q * BLOCK + i]);
}

/* The first time, too: which keys there are. */
static void widen(forms *f) {
  for (int64_t i = 0; i < f->held && f->own && !f->refused; ++i) {
    int64_t key = f->keys[i], low = f->span == 0 || key < f->low ? key : f->low;
    uint64_t end = f->span == 0 || key >= f->low + f->span ? (uint64_t)key + 1 : (uint64_t)(f->low + f->span);
    if (end - (uint64_t)low > (uint64_t)f->rows)
      f->refused = TOO_FEW_ROWS;
    else
      f->low = low, f->span = (int64_t)(end - (uint64_t)low);
  }
}

/* The second time: reflections of the block less the means. */
static void reflect_rest(forms *f) {
  for (int64_t q = 0; q < f->columns; ++q) {
    double *column = f->block + q * BLOCK;
    for (int64_t i = 0; i < f->held; ++i) column[i] -= f->means[q];
    f->norms[q] += along(column, column);
  }
  int64_t size = f->own * f->columns;
  for (int64_t i = 0; i < f->held && f->own; ++i) {
    int64_t first = (f->keys[i] - f->low) * size;
    rotate_row(f->own, f->columns, f->block + i, f->groups + first, f->groups_rounded + first);
  }
  reflect_block(shared_columns(f), f->block + f->own * BLOCK, f->triangle, f->rounded);
}

static void take_block(forms *f) {
  for (int64_t q = 0; q < f->columns && !f->refused && f->turn == 0; ++q)
    if (!is_moderate(f->block + q * BLOCK)) f->refused = NOT_FINITE;
  if (f->turn == 0) widen(f);
  if (!f->refused) (f->turn == 0 ? add_up : reflect_rest)(f);
  memset(f->block, 0, (size_t)(f->columns * BLOCK) * sizeof *f->block);
  f->held = 0;
}

ULAM_API void ulam_forms_row(ulam_context *ctx, const int64_t *old, int64_t *state, const double *row, int64_t width,
                             int64_t key) {
  (void)ctx, (void)old;
  forms *f = (forms *)state;
  for (int64_t q = 0; q < width; ++q) f->block[q * BLOCK + f->held] = row[q];
  f->keys[f->held] = key;
  if (++f->held == BLOCK) take_block(f);
}

/* Whether means of groups are far from the mean, beside what is left within them: of columns that are not constant there,
 * but for what has been rounded. */
static int groups_cancel(const forms *f) {
  int64_t n = shared_columns(f);
  for (int64_t q = 0; q < n && f->own; ++q) {
    double within = 0;
    for (int64_t i = 0; i <= q; ++i) within += f->triangle[i * n + q] * f->triangle[i * n + q];
    for (int64_t g = 0; g < f->span; ++g) {
      const double *row = f->groups + g * f->own * f->columns;
      double ratio = row[0] > 0 ? fabs(row[f->own + q]) * sqrt((double)f->rows) / (row[0] * sqrt(within)) : 0;
      if (ratio > TOO_MUCH && ratio < CONSTANT) return 1;
    }
  }
  return 0;
}

/* All rows have come. */
ULAM_API void ulam_forms_turn(ulam_context *ctx, const int64_t *old, int64_t *state) {
  (void)old;
  forms *f = (forms *)state;
  if (f->held) take_block(f);
  double rows = (double)f->rows;
  for (int64_t q = 1; q < f->columns && !f->refused; ++q)
    if (f->turn == 0)
      f->means[q] = (f->means[q] + f->rounded[q]) / rows, f->rounded[q] = 0;
    else if (f->norms[q] > 0 && !(fabs(f->means[q]) * sqrt(rows) < TOO_MUCH * sqrt(f->norms[q])))
      f->refused = CANCELS;
  if (!f->refused && f->turn == 0 && f->own) {
    int64_t size = f->span * f->own * f->columns;
    if (!is_less_work(f))
      f->refused = TOO_FEW_ROWS;
    else
      f->groups = zeros(ctx, size), f->groups_rounded = zeros(ctx, size);
  }
  if (!f->refused && f->turn == 1 && groups_cancel(f)) f->refused = CANCELS;
  if (f->refused) f->turns = 0;
  f->turn += 1;
}

/* sizes: 0 if the rows are reduced, else why not; how many are left, and of the table; rows, columns, bytes; the least
 * key, and how many there are. */
ULAM_API void ulam_forms_sizes(ulam_context *ctx, const int64_t *state, int64_t *sizes) {
  (void)ctx;
  forms f;
  memcpy(&f, state, sizeof f);
  int64_t rows = f.refused ? 0 : rows_left(&f), size = f.refused ? 0 : (rows + 1) * f.columns;
  sizes[0] = f.refused;
  sizes[1] = rows;
  sizes[2] = size;
  sizes[3] = f.rows;
  sizes[4] = f.columns;
  sizes[5] = size * (int64_t)sizeof(double);
  sizes[6] = f.low;
  sizes[7] = f.refused ? 0 : f.span;
}

/* What is left: rows of groups, key by key, row behind row of the triangle, then the means. */
ULAM_API void ulam_forms_table(ulam_context *ctx, const int64_t *state, double *table, int64_t size) {
  (void)ctx;
  forms f;
  memcpy(&f, state, sizeof f);
  if (size == 0) return;
  int64_t n = shared_columns(&f), own = f.span * f.own * f.columns;
  for (int64_t i = 0; i < own; ++i) table[i] = f.groups[i] + f.groups_rounded[i];
  for (int64_t i = 0; i < n; ++i) {
    double *row = table + own + i * f.columns;
    for (int64_t k = 0; k < f.own; ++k) row[k] = 0;
    for (int64_t k = 0; k < n; ++k) row[f.own + k] = k < i ? 0 : f.triangle[i * n + k] + f.rounded[i * n + k];
  }
  memcpy(table + own + n * f.columns, f.means, (size_t)f.columns * sizeof *table);
}
