/* Rows of data of which only the sum of quadratic forms is needed, reduced once, when data are bound.
 *
 * A quadratic form of a row is that of its numbers, which are `columns`, the first of them 1. With X all rows, and R the
 * triangle for which R' R = X' X, the sum of any quadratic form over the rows of X is that over the rows of R, which are
 * as many as there are columns.
 *
 * Rows come twice: the first time gives means, the second time R for numbers less their means, computed where these are
 * no larger than they. Evaluations put what the means are to each row of R together with its first number. Memory is
 * that of the result, and of a block of rows. */
#include "reflections.h"

/* Why rows are not reduced; passes/loops/form_binding.py has the words. */
enum { NOT_FINITE = 1, TOO_FEW_ROWS = 2, CANCELS = 3 };

static const double LESS_WORK = 1.25, TOO_MUCH = 1e3;

typedef struct __attribute__((may_alias)) {
  int64_t turns; /* how often rows come: read by compiled code, whenever they are to come again */
  int64_t turn, columns, rows, refused, held;
  double *triangle; /* as many rows as columns */
  double *rounded;  /* what additions to the triangle have rounded away; at first, what those to the means have */
  double *means;    /* that of the first column is 0 */
  double *norms;    /* of numbers less their means, squared */
  double *block;    /* a column of BLOCK for each column */
} forms;

_Static_assert(sizeof(forms) <= 12 * sizeof(int64_t), "as library/kernels.py has it");

ULAM_API void ulam_forms_begin(ulam_context *ctx, int64_t *state, int64_t columns, int64_t rows) {
  forms f = {.turns = 2, .columns = columns, .rows = rows};
  if (!(LESS_WORK * (double)columns <= (double)rows)) {
    f.refused = TOO_FEW_ROWS, f.turns = 0;
    memcpy(state, &f, sizeof f);
    return;
  }
  f.triangle = zeros(ctx, columns * columns);
  f.rounded = zeros(ctx, columns * columns);
  f.means = zeros(ctx, columns);
  f.norms = zeros(ctx, columns);
  f.block = zeros(ctx, columns * BLOCK);
  memcpy(state, &f, sizeof f);
}

/* The first time: sums of the numbers of the block. */
static void add_up(forms *f) {
  for (int64_t q = 1; q < f->columns; ++q)
    for (int64_t i = 0; i < f->held; ++i) increase(f->means + q, f->rounded + q, f->block[q * BLOCK + i]);
}

/* The second time: reflections of the block less the means. */
static void reflect_rest(forms *f) {
  for (int64_t q = 0; q < f->columns; ++q) {
    double *column = f->block + q * BLOCK;
    for (int64_t i = 0; i < f->held; ++i) column[i] -= f->means[q];
    f->norms[q] += along(column, column);
  }
  reflect_block(f->columns, f->block, f->triangle, f->rounded);
}

static void take_block(forms *f) {
  for (int64_t q = 0; q < f->columns && !f->refused && f->turn == 0; ++q)
    if (!is_moderate(f->block + q * BLOCK)) f->refused = NOT_FINITE;
  if (!f->refused) (f->turn == 0 ? add_up : reflect_rest)(f);
  memset(f->block, 0, (size_t)(f->columns * BLOCK) * sizeof *f->block);
  f->held = 0;
}

ULAM_API void ulam_forms_row(ulam_context *ctx, const int64_t *old, int64_t *state, const double *row, int64_t width) {
  (void)ctx, (void)old;
  forms *f = (forms *)state;
  for (int64_t q = 0; q < width; ++q) f->block[q * BLOCK + f->held] = row[q];
  if (++f->held == BLOCK) take_block(f);
}

/* All rows have come. */
ULAM_API void ulam_forms_turn(ulam_context *ctx, const int64_t *old, int64_t *state) {
  (void)ctx, (void)old;
  forms *f = (forms *)state;
  if (f->held) take_block(f);
  double rows = (double)f->rows;
  for (int64_t q = 1; q < f->columns && !f->refused; ++q)
    if (f->turn == 0)
      f->means[q] = (f->means[q] + f->rounded[q]) / rows, f->rounded[q] = 0;
    else if (f->norms[q] > 0 && !(fabs(f->means[q]) * sqrt(rows) < TOO_MUCH * sqrt(f->norms[q])))
      f->refused = CANCELS;
  if (f->refused) f->turns = 0;
  f->turn += 1;
}

/* sizes: 0 if the rows are reduced, else why not; how many are left, and of the table; rows, columns, bytes. */
ULAM_API void ulam_forms_sizes(ulam_context *ctx, const int64_t *state, int64_t *sizes) {
  (void)ctx;
  forms f;
  memcpy(&f, state, sizeof f);
  int64_t size = f.refused ? 0 : f.columns * (f.columns + 1);
  sizes[0] = f.refused;
  sizes[1] = f.refused ? 0 : f.columns;
  sizes[2] = size;
  sizes[3] = f.rows;
  sizes[4] = f.columns;
  sizes[5] = size * (int64_t)sizeof(double);
}

/* What is left: row behind row of the triangle, then the means. */
ULAM_API void ulam_forms_table(ulam_context *ctx, const int64_t *state, double *table, int64_t size) {
  (void)ctx;
  forms f;
  memcpy(&f, state, sizeof f);
  if (size == 0) return;
  int64_t n = f.columns;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t k = 0; k < n; ++k) table[i * n + k] = k < i ? 0 : f.triangle[i * n + k] + f.rounded[i * n + k];
  memcpy(table + n * n, f.means, (size_t)n * sizeof *table);
}
