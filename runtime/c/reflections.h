/* Rows of data that are reduced to a triangle by reflections, a block of them at a time; where numbers cancel, in twice
 * the digits. */
#ifndef ULAM_REFLECTIONS_H
#define ULAM_REFLECTIONS_H

#include <math.h>
#include <string.h>

#include "dense.h"
#include "reduced_rows.h"
#include "twofold.h"

enum {
  BLOCK = 64, /* rows that are reflected at a time: a column of so many numbers for each of theirs */
  RUN = 4     /* rows of a group, one behind the other, from which on they are reflected together */
};

/* Squares and sums of numbers between have room; coefficients may be as large as the largest again. */
static const double LARGEST = 1e70, SMALLEST = 1e-70;

/* How many times as large as what is left numbers may be that cancel, by the number of rows. A loop over n rows has
 * errors of the root of n of them, relative to what they add up; reduced rows have those of numbers that cancel. */
static const double FEW_CANCEL = 0.5, MOST_CANCEL = 100; /* times the root of n, at most */
static const double DEPENDENT = 1e-13; /* parts of columns that are combinations of others, but for rounding */

static inline double most_that_may_cancel(double rows) { return fmin(MOST_CANCEL, FEW_CANCEL * sqrt(rows)); }

static inline double *zeros(ulam_context *ctx, int64_t count) {
  double *found = ulam_doubles(ctx, count);
  memset(found, 0, (size_t)count * sizeof *found);
  return found;
}

/* What loops over rows of a block are made of: part of functions that are compiled for several processors. */
#define WITHIN_CLONES static inline __attribute__((always_inline))

/* Whether all numbers of a column have a size that squares have room for. */
ULAM_CLONES static int is_moderate(const double *column) {
  int64_t wrong = 0;
  for (int i = 0; i < BLOCK; ++i) {
    double size = fabs(column[i]);
    wrong |= !(size < LARGEST) | ((size > 0) & (size < SMALLEST));
  }
  return wrong == 0;
}

WITHIN_CLONES double along(const double *restrict a, const double *restrict b) {
  double sums[LANES] = {0};
  for (int i = 0; i < BLOCK; i += LANES)
    for (int k = 0; k < LANES; ++k) sums[k] += a[i + k] * b[i + k];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

WITHIN_CLONES void subtract(double factor, const double *restrict a, double *restrict b) {
  for (int i = 0; i < BLOCK; ++i) b[i] -= factor * a[i];
}

/* Adds the squares of the columns of a block. */
ULAM_CLONES static void add_squares(int64_t columns, const double *block, double *norms) {
  for (int64_t q = 0; q < columns; ++q) norms[q] += along(block + q * BLOCK, block + q * BLOCK);
}

/* Householder reflections of [triangle; block], of n columns. Rows of the triangle then change their sign, so that what
 * a block adds to them is as small as its rows are: its rounding errors are, too, and those of the sums are kept. */
ULAM_CLONES static void reflect_block(int64_t n, double *block, double *triangle, double *all_rounded) {
  for (int64_t j = 0; j < n; ++j) {
    double *column = block + j * BLOCK, *row = triangle + j * n, *rounded = all_rounded + j * n;
    double norm2 = along(column, column);
    if (!(norm2 > 0)) continue;
    double norm = sqrt(row[j] * row[j] + norm2), pivot = row[j] + norm, more = norm2 / pivot;
    for (int64_t c = j + 1; c < n; ++c) {
      double *other = block + c * BLOCK, product = along(column, other), factor = (row[c] + product / pivot) / norm;
      increase(row + c, rounded + c, (product - more * row[c]) / norm);
      subtract(factor, column, other);
    }
    increase(row + j, rounded + j, more);
  }
}

/* Givens rotations of a row, of n columns, into `own` rows, for the first columns. As in reflect_block, what is added to
 * these rows is as small as the row is, and what these sums round away is kept. */
WITHIN_CLONES void rotate_row(int64_t own, int64_t n, double *restrict row, double *restrict all_kept,
                              double *restrict all_rounded) {
  for (int64_t p = 0; p < own; ++p) {
    double *kept = all_kept + p * n, *rounded = all_rounded + p * n, x = row[p];
    if (x == 0) continue;
    double norm = sqrt(kept[p] * kept[p] + x * x), c = kept[p] / norm, s = x / norm, more = x * x / (kept[p] + norm);
    double less = more / norm;
    for (int64_t q = p + 1; q < n; ++q) {
      double a = kept[q], b = row[q];
      twofold sum = sum_of(a, s * b - less * a);
      kept[q] = sum.high, rounded[q] += sum.low;
      row[q] = c * b - s * a;
    }
    increase(kept + p, rounded + p, more);
  }
}

/* The same for `count` rows of a block; a row of their own, `row`, has their numbers side by side meanwhile. */
ULAM_CLONES static void rotate_rows(int64_t count, int64_t own, int64_t n, double *rows, double *row, double *kept,
                                    double *rounded) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t q = 0; q < n; ++q) row[q] = rows[q * BLOCK + i];
    rotate_row(own, n, row, kept, rounded);
    for (int64_t q = own; q < n; ++q) rows[q * BLOCK + i] = row[q];
  }
}

enum { FEW = 4 }; /* columns of groups: rows of different groups are rotated side by side */

/* rotate_row for the first columns of LANES rows of a block, each into rows of its group, of which these columns are in
 * `kept` and `rounded`. What that does to other columns: a row b and a kept one, a, become c b - s a and a + (s b - less a). */
typedef struct {
  double kept[FEW][FEW][LANES], rounded[FEW][FEW][LANES], c[FEW][LANES], s[FEW][LANES], less[FEW][LANES];
} rotations;

WITHIN_CLONES void rotate_first(int64_t own, const double *rows, rotations *r) {
  double left[FEW][LANES];
  for (int64_t q = 0; q < own; ++q) memcpy(left[q], rows + q * BLOCK, sizeof left[q]);
  for (int64_t p = 0; p < own; ++p) {
    for (int i = 0; i < LANES; ++i) {
      double kept = r->kept[p][p][i], x = left[p][i], norm = sqrt(kept * kept + x * x), more = x * x / (kept + norm);
      int is_left = x != 0;
      r->c[p][i] = is_left ? kept / norm : 1, r->s[p][i] = is_left ? x / norm : 0;
      r->less[p][i] = is_left ? more / norm : 0;
      increase(&r->kept[p][p][i], &r->rounded[p][p][i], is_left ? more : 0);
    }
    for (int64_t q = p + 1; q < own; ++q)
      for (int i = 0; i < LANES; ++i) {
        double a = r->kept[p][q][i], b = left[q][i];
        increase(&r->kept[p][q][i], &r->rounded[p][q][i], r->s[p][i] * b - r->less[p][i] * a);
        left[q][i] = r->c[p][i] * b - r->s[p][i] * a;
      }
  }
}

/* Reduces LANES rows of a block, of different groups, into those of these, which begin at `first` in `kept`. There is room
 * for the rows, where each has its numbers side by side. */
ULAM_CLONES static void rotate_apart(int64_t own, int64_t n, double *rows, double *restrict room, const int64_t *first,
                                     double *restrict all_kept, double *restrict all_rounded) {
  rotations r;
  for (int i = 0; i < LANES; ++i)
    for (int64_t p = 0; p < own; ++p)
      for (int64_t q = p; q < own; ++q) {
        r.kept[p][q][i] = all_kept[first[i] + p * n + q];
        r.rounded[p][q][i] = all_rounded[first[i] + p * n + q];
      }
  for (int64_t q = own; q < n; ++q) /* long before they are read as vectors */
    for (int i = 0; i < LANES; ++i) room[i * n + q] = rows[q * BLOCK + i];
  rotate_first(own, rows, &r);
  for (int i = 0; i < LANES; ++i) {
    double *row = room + i * n;
    for (int64_t p = 0; p < own; ++p) {
      double *kept = all_kept + first[i] + p * n, *rounded = all_rounded + first[i] + p * n;
      double c = r.c[p][i], s = r.s[p][i], less = r.less[p][i];
      for (int64_t q = p; q < own; ++q) kept[q] = r.kept[p][q][i], rounded[q] = r.rounded[p][q][i];
      for (int64_t q = own; q < n; ++q) {
        double a = kept[q], b = row[q];
        twofold sum = sum_of(a, s * b - less * a);
        kept[q] = sum.high, rounded[q] += sum.low;
        row[q] = c * b - s * a;
      }
    }
  }
  for (int64_t q = own; q < n; ++q)
    for (int i = 0; i < LANES; ++i) rows[q * BLOCK + i] = room[i * n + q];
}

/* Whether LANES keys are those of different groups. */
static inline int are_apart(const int64_t *keys) {
  int alike = 0;
  for (int i = 0; i < LANES; ++i)
    for (int k = 0; k < i; ++k) alike |= keys[i] == keys[k];
  return !alike;
}

/* The scalar product of parts of two columns. */
WITHIN_CLONES double along_some(int64_t count, const double *restrict a, const double *restrict b) {
  double sums[LANES] = {0}, sum = 0;
  int64_t i = 0;
  for (; i + LANES <= count; i += LANES)
    for (int k = 0; k < LANES; ++k) sums[k] += a[i + k] * b[i + k];
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum + (((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7])));
}

WITHIN_CLONES void subtract_some(int64_t count, double factor, const double *restrict a, double *restrict b) {
  for (int64_t i = 0; i < count; ++i) b[i] -= factor * a[i];
}

/* rotate_rows by reflections. */
ULAM_CLONES static void reflect_rows(int64_t count, int64_t own, int64_t n, double *rows, double *all_kept,
                                     double *all_rounded) {
  for (int64_t p = 0; p < own; ++p) {
    double *column = rows + p * BLOCK, *kept = all_kept + p * n, *rounded = all_rounded + p * n;
    double norm2 = along_some(count, column, column);
    if (!(norm2 > 0)) continue;
    double norm = sqrt(kept[p] * kept[p] + norm2), pivot = kept[p] + norm, more = norm2 / pivot;
    for (int64_t q = p + 1; q < n; ++q) {
      double *other = rows + q * BLOCK, product = along_some(count, column, other);
      double factor = (kept[q] + product / pivot) / norm;
      increase(kept + q, rounded + q, (product - more * kept[q]) / norm);
      subtract_some(count, factor, column, other);
    }
    increase(kept + p, rounded + p, more);
  }
}

/* Reduces `count` rows of a block into `own` rows, for the first columns; `row`: room for n numbers. */
static inline void reduce_rows(int64_t count, int64_t own, int64_t n, double *rows, double *row, double *kept,
                               double *rounded) {
  if (count >= RUN)
    reflect_rows(count, own, n, rows, kept, rounded);
  else
    rotate_rows(count, own, n, rows, row, kept, rounded);
}

/* How many rows of a block from one on have the same key. */
static inline int64_t rows_alike(const int64_t *keys, int64_t held) {
  int64_t count = 1;
  while (count < held && keys[count] == keys[0]) ++count;
  return count;
}

/* The scalar product of columns of twice the digits, each with its second numbers behind. */
TWOFOLD_CLONES static twofold along_twofold(const double *restrict a, const double *restrict b, const double *restrict a_low,
                                            const double *restrict b_low) {
  double sums[LANES] = {0}, rests[LANES] = {0};
  for (int i = 0; i < BLOCK; i += LANES)
    for (int k = 0; k < LANES; ++k) {
      twofold product = product_of(a[i + k], b[i + k]), sum = sum_of(sums[k], product.high);
      sums[k] = sum.high;
      rests[k] += sum.low + (product.low + (a[i + k] * b_low[i + k] + a_low[i + k] * b[i + k]));
    }
  twofold total = {0, 0};
  for (int k = 0; k < LANES; ++k) total = plus_twofold(total, sum_of(sums[k], rests[k]));
  return total;
}

TWOFOLD_CLONES static void subtract_twofold(twofold factor, const double *restrict a, const double *restrict a_low,
                                            double *restrict b, double *restrict b_low) {
  for (int i = 0; i < BLOCK; ++i) {
    twofold product = product_of(-factor.high, a[i]), sum = sum_of(b[i], product.high);
    double rest = product.low - (factor.high * a_low[i] + factor.low * a[i]);
    sum = joined(sum.high, sum.low + (b_low[i] + rest));
    b[i] = sum.high, b_low[i] = sum.low;
  }
}

/* reflect_block in twice the digits: `low` numbers are added to those of the block and of the triangle. */
static inline void reflect_block_twofold(int64_t n, double *block, double *block_low, double *triangle,
                                         double *triangle_low) {
  for (int64_t j = 0; j < n; ++j) {
    double *column = block + j * BLOCK, *column_low = block_low + j * BLOCK;
    double *row = triangle + j * n, *row_low = triangle_low + j * n;
    twofold norm2 = along_twofold(column, column, column_low, column_low), own = {row[j], row_low[j]};
    if (!(norm2.high > 0)) continue;
    twofold norm = root_of_twofold(plus_twofold(times_twofold(own, own), norm2)), pivot = plus_twofold(own, norm);
    twofold more = over_twofold(norm2, pivot);
    for (int64_t c = j + 1; c < n; ++c) {
      double *other = block + c * BLOCK, *other_low = block_low + c * BLOCK;
      twofold product = along_twofold(column, other, column_low, other_low), entry = {row[c], row_low[c]};
      twofold factor = over_twofold(plus_twofold(entry, over_twofold(product, pivot)), norm);
      twofold change = over_twofold(minus_twofold(product, times_twofold(more, entry)), norm);
      entry = plus_twofold(entry, change);
      row[c] = entry.high, row_low[c] = entry.low;
      subtract_twofold(factor, column, column_low, other, other_low);
    }
    own = plus_twofold(own, more);
    row[j] = own.high, row_low[j] = own.low;
  }
}

/* rotate_row in twice the digits. */
static inline void rotate_row_twofold(int64_t own, int64_t n, double *row, double *row_low, double *all_kept,
                                      double *all_kept_low) {
  for (int64_t p = 0; p < own; ++p) {
    double *kept = all_kept + p * n, *kept_low = all_kept_low + p * n;
    twofold x = {row[p * BLOCK], row_low[p * BLOCK]}, first = {kept[p], kept_low[p]};
    if (x.high == 0) continue;
    twofold norm = root_of_twofold(plus_twofold(times_twofold(first, first), times_twofold(x, x)));
    twofold c = over_twofold(first, norm), s = over_twofold(x, norm);
    kept[p] = norm.high, kept_low[p] = norm.low;
    for (int64_t q = p + 1; q < n; ++q) {
      twofold a = {kept[q], kept_low[q]}, b = {row[q * BLOCK], row_low[q * BLOCK]};
      twofold found = plus_twofold(times_twofold(c, a), times_twofold(s, b));
      kept[q] = found.high, kept_low[q] = found.low;
      found = minus_twofold(times_twofold(c, b), times_twofold(s, a));
      row[q * BLOCK] = found.high, row_low[q * BLOCK] = found.low;
    }
  }
}

#endif
