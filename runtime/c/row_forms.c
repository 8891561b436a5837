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
 * Where numbers may cancel in a value that is linear in them, rows come once more, and are reduced in twice the digits.
 * R is left as it is then, or less means of columns, with these, if nothing but a column and its mean can cancel. Where
 * coefficients belong to groups, rows come before, too, which tells the groups. Memory is that of the result, and of a
 * block of rows. */
#include "reduced_forms.h"
#include "reflections.h"

/* Why rows are not reduced; passes/loops/form_binding.py has the words. */
enum { NOT_FINITE = 1, TOO_FEW_ROWS = 2 };

/* What is done with rows, each time that they come. */
enum { KEYS, ONCE, TWICE };

static const double FAR_MEAN = 1e3;

typedef struct __attribute__((may_alias)) {
  int64_t turns; /* how often rows come, at most: read by compiled code, whenever they are to come again */
  int64_t turn, phase, columns, rows, refused, held;
  int64_t is_twofold; /* whether the result has twice the digits */
  int64_t own, low, span; /* columns of groups; the least key, and how many there are from it on */
  int64_t quarters;       /* so many quarters of the rows that are left there have to be, at least */
  double *triangle; /* as many rows as columns, but for those of groups */
  double *rounded;  /* what additions to the triangle have rounded away; then second numbers of twice the digits */
  double *groups, *groups_rounded; /* `own` rows for each key */
  double *block, *block_low;       /* a column of BLOCK for each column; behind, room for a row */
  double *norms;                   /* of columns, squared */
  int64_t *keys;                   /* of the rows of the block */
} forms;

_Static_assert(sizeof(forms) <= 20 * sizeof(int64_t), "as library/kernels.py has it");

static int64_t shared_columns(const forms *f) { return f->columns - f->own; }

static int64_t rows_left(const forms *f) { return f->span * f->own + shared_columns(f); }

static int is_less_work(const forms *f) {
  return (double)f->quarters / 4 * (double)rows_left(f) <= (double)f->rows;
}

ULAM_API void ulam_forms_begin(ulam_context *ctx, int64_t *state, int64_t columns, int64_t rows, int64_t own,
                               int64_t quarters) {
  forms f = {.columns = columns, .rows = rows, .own = own, .span = own > 0, .quarters = quarters};
  f.phase = own > 0 ? KEYS : ONCE, f.turns = own > 0 ? 3 : 2;
  if (!is_less_work(&f)) {
    f.refused = TOO_FEW_ROWS, f.turns = 0;
    memcpy(state, &f, sizeof f);
    return;
  }
  int64_t shared = shared_columns(&f);
  f.span = 0;
  f.triangle = zeros(ctx, shared * shared), f.rounded = zeros(ctx, shared * shared);
  f.norms = zeros(ctx, columns);
  f.block = zeros(ctx, columns * (BLOCK + 1)), f.block_low = zeros(ctx, columns * BLOCK);
  f.keys = ulam_alloc(ctx, BLOCK * (int64_t)sizeof *f.keys);
  memcpy(state, &f, sizeof f);
}

/* Which keys there are. */
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

/* Reduces rows of the block from row i on into those of their group; how many. */
static int64_t leave_to_group(forms *f, int64_t i) {
  int64_t count = f->phase == TWICE ? 1 : rows_alike(f->keys + i, f->held - i);
  int64_t first = (f->keys[i] - f->low) * f->own * f->columns;
  double *kept = f->groups + first, *rounded = f->groups_rounded + first;
  if (f->phase == TWICE)
    rotate_row_twofold(f->own, f->columns, f->block + i, f->block_low + i, kept, rounded);
  else
    reduce_rows(count, f->own, f->columns, f->block + i, f->block + f->columns * BLOCK, kept, rounded);
  return count;
}

static void reduce(forms *f) {
  int64_t first = f->own * BLOCK, n = shared_columns(f);
  if (f->phase == ONCE) add_squares(f->columns, f->block, f->norms);
  for (int64_t i = 0; i < f->held && f->own;) i += leave_to_group(f, i);
  if (f->phase == TWICE)
    reflect_block_twofold(n, f->block + first, f->block_low + first, f->triangle, f->rounded);
  else
    reflect_block(n, f->block + first, f->triangle, f->rounded);
}

static void take_block(forms *f) {
  for (int64_t q = 0; q < f->columns && !f->refused && f->turn == 0; ++q)
    if (!is_moderate(f->block + q * BLOCK)) f->refused = NOT_FINITE;
  if (!f->refused) (f->phase == KEYS ? widen : reduce)(f);
  memset(f->block, 0, (size_t)(f->columns * BLOCK) * sizeof *f->block);
  memset(f->block_low, 0, (size_t)(f->columns * BLOCK) * sizeof *f->block);
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

static int is_dependent(double pivot, double norm2) { return !(fabs(pivot) > DEPENDENT * sqrt(norm2)); }

/* How much larger a column is than what the others leave of it, at most, by a triangle of `n` columns. Those that are
 * combinations of others, but for rounding, do not count. */
static double cancelling(int64_t n, const double *triangle, int64_t stride, const double *norms, double *inverse) {
  double most = 0;
  for (int64_t q = 0; q < n; ++q) {
    double sum = 0; /* of the squares of a row of the inverse */
    for (int64_t j = q; j < n; ++j) {
      double entry = j == q, pivot = triangle[j * stride + j];
      for (int64_t i = q; i < j; ++i) entry -= inverse[i] * triangle[i * stride + j];
      inverse[j] = is_dependent(pivot, norms[j]) ? 0 : entry / pivot;
      sum += inverse[j] * inverse[j];
    }
    most = fmax(most, sqrt(sum * norms[q]));
  }
  return most;
}

/* How many columns a value has besides the number 1. */
static int64_t columns_of(ulam_context *ctx, const forms *f, form_plan plan, int64_t value) {
  double *is_there = zeros(ctx, f->columns);
  int64_t found = 0;
  for (int64_t e = plan.shared.starts[value]; e < plan.shared.starts[value + 1]; ++e)
    is_there[plan.shared.columns[e]] = 1;
  for (int64_t e = plan.keyed.starts[value]; e < plan.keyed.starts[value + 1]; ++e) is_there[plan.keyed.columns[e]] = 1;
  for (int64_t q = 1; q < f->columns; ++q) found += is_there[q] > 0;
  return found;
}

/* That of the shared columns of a value: of those of the triangle that it has. Where one is a combination of others, as
 * outcomes without noise are, coefficients may cancel all of it. */
static double cancelling_in_value(ulam_context *ctx, const forms *f, form_plan plan, int64_t value) {
  int64_t all = shared_columns(f), n = 0;
  double *is_there = zeros(ctx, all), *norms = zeros(ctx, all), *inverse = zeros(ctx, all);
  for (int64_t e = plan.shared.starts[value]; e < plan.shared.starts[value + 1]; ++e)
    if (plan.shared.columns[e] >= f->own) is_there[plan.shared.columns[e] - f->own] = 1;
  for (int64_t q = 0; q < all; ++q) n += is_there[q] > 0;
  double *block = zeros(ctx, n * BLOCK), *triangle = zeros(ctx, n * n), *rounded = zeros(ctx, n * n);
  for (int64_t first = 0; first < all; first += BLOCK) {
    int64_t k = 0;
    memset(block, 0, (size_t)(n * BLOCK) * sizeof *block);
    for (int64_t q = 0; q < all; ++q) {
      if (!is_there[q]) continue;
      norms[k] = f->norms[f->own + q];
      for (int64_t i = 0; i < BLOCK && first + i < all; ++i) block[k * BLOCK + i] = f->triangle[(first + i) * all + q];
      ++k;
    }
    reflect_block(n, block, triangle, rounded);
  }
  for (int64_t k = 0; k < n; ++k)
    if (norms[k] > 0 && is_dependent(triangle[k * n + k], norms[k])) return INFINITY;
  return cancelling(n, triangle, n, norms, inverse);
}

/* That of the columns of groups. */
static double cancelling_in_groups(ulam_context *ctx, const forms *f) {
  double most = 0, *norms = zeros(ctx, f->own), *inverse = zeros(ctx, f->own);
  for (int64_t g = 0; g < f->span && f->own; ++g) {
    const double *rows = f->groups + g * f->own * f->columns;
    memset(norms, 0, (size_t)f->own * sizeof *norms);
    for (int64_t p = 0; p < f->own; ++p)
      for (int64_t i = 0; i <= p; ++i) norms[p] += rows[i * f->columns + p] * rows[i * f->columns + p];
    most = fmax(most, cancelling(f->own, rows, f->columns, norms, inverse));
  }
  return most;
}

/* Whether numbers cancel so that rows have to be reduced in twice the digits; and whether these have to be left. */
static int cancels(ulam_context *ctx, forms *f, form_plan plan) {
  double limit = most_that_may_cancel((double)f->rows), most = cancelling_in_groups(ctx, f);
  f->is_twofold = most > limit;
  for (int64_t v = 0; v < plan.values; ++v) {
    char *mark = ctx->arena_cursor;
    double found = cancelling_in_value(ctx, f, plan, v);
    f->is_twofold |= found > (columns_of(ctx, f, plan, v) > 1 ? limit : FAR_MEAN);
    most = fmax(most, found);
    ulam_release(ctx, mark);
  }
  return most > limit;
}

static void begin_groups(ulam_context *ctx, forms *f) {
  int64_t size = f->span * f->own * f->columns;
  if (!is_less_work(f))
    f->refused = TOO_FEW_ROWS;
  else
    f->groups = zeros(ctx, size), f->groups_rounded = zeros(ctx, size);
}

/* Begins in twice the digits. */
static void begin_again(forms *f) {
  size_t shared = (size_t)(shared_columns(f) * shared_columns(f)), of_groups = (size_t)(f->span * f->own * f->columns);
  memset(f->triangle, 0, shared * sizeof(double)), memset(f->rounded, 0, shared * sizeof(double));
  if (!f->own) return;
  memset(f->groups, 0, of_groups * sizeof(double)), memset(f->groups_rounded, 0, of_groups * sizeof(double));
}

/* All rows have come. */
ULAM_API void ulam_forms_turn(ulam_context *ctx, const int64_t *old, int64_t *state, const int64_t *plan, int64_t size,
                              int64_t values) {
  (void)old, (void)size;
  forms *f = (forms *)state;
  if (f->held) take_block(f);
  if (!f->refused && f->phase == KEYS) {
    begin_groups(ctx, f);
  } else if (!f->refused && f->phase == ONCE) {
    if (cancels(ctx, f, form_plan_of(plan, values)))
      begin_again(f);
    else
      f->turns = f->turn + 1;
  }
  if (f->refused) f->turns = 0;
  f->turn += 1;
  if (f->turn < f->turns) f->phase += 1;
}

/* sizes: 0 if the rows are reduced, else why not; how many are left, and the size of the table; rows, columns, bytes; the
 * least key, and how many there are. */
ULAM_API void ulam_forms_sizes(ulam_context *ctx, const int64_t *state, int64_t *sizes) {
  (void)ctx;
  forms f;
  memcpy(&f, state, sizeof f);
  int64_t rows = f.refused ? 0 : rows_left(&f), size = 0;
  if (!f.refused) size = f.is_twofold ? twofold_forms_size(rows, f.columns) : centred_forms_size(rows, f.columns);
  sizes[0] = f.refused;
  sizes[1] = rows;
  sizes[2] = size;
  sizes[3] = f.rows;
  sizes[4] = f.columns;
  sizes[5] = size * (int64_t)sizeof(double);
  sizes[6] = f.low;
  sizes[7] = f.refused ? 0 : f.span;
}

/* A number of a row: of those of groups, then of those of the triangle. */
static twofold number_of(const forms *f, int64_t row, int64_t q) {
  int64_t shared = row - f->span * f->own, n = shared_columns(f);
  if (shared < 0) return (twofold){f->groups[row * f->columns + q], f->groups_rounded[row * f->columns + q]};
  if (q < f->own) return (twofold){0, 0};
  int64_t at = shared * n + q - f->own;
  return (twofold){f->triangle[at], f->rounded[at]};
}

/* The means of columns, 1 of the first. */
static void put_means(const forms *f, double *means) {
  int64_t rows = rows_left(f);
  means[0] = 1;
  for (int64_t q = 1; q < f->columns; ++q) {
    twofold total = {0, 0}, count = {0, 0};
    for (int64_t r = 0; r < rows; ++r) {
      twofold first = number_of(f, r, 0);
      total = plus_twofold(total, times_twofold(first, number_of(f, r, q)));
      count = plus_twofold(count, times_twofold(first, first));
    }
    means[q] = over_twofold(total, count).high;
  }
}

/* Where a row of number_of is in a column. */
static int64_t place_of(const forms *f, int64_t row) {
  return row < f->own * f->span ? row % f->own * f->span + row / f->own : row;
}

/* What is left, as in reduced_forms.h. Only rows with a number 1 are less means. */
ULAM_API void ulam_forms_table(ulam_context *ctx, const int64_t *state, double *table, int64_t size) {
  (void)ctx;
  forms f;
  memcpy(&f, state, sizeof f);
  if (size == 0) return;
  memset(table, 0, (size_t)size * sizeof *table);
  int64_t rows = rows_left(&f);
  double *behind = table + reduced_forms_size(rows, f.columns);
  if (!f.is_twofold) put_means(&f, behind);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t q = 0; q < f.columns; ++q) {
      twofold found = number_of(&f, r, q);
      int64_t at = q * rows + place_of(&f, r);
      twofold mean = {q > 0 ? behind[q] : 0, 0};
      if (f.is_twofold)
        behind[at] = found.low;
      else
        found = minus_twofold(found, times_twofold(number_of(&f, r, 0), mean));
      table[at] = found.high;
    }
}
