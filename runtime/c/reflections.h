/* Rows of data that are reduced to a triangle by reflections, a block of them at a time. */
#ifndef ULAM_REFLECTIONS_H
#define ULAM_REFLECTIONS_H

#include <math.h>
#include <string.h>

#include "dense.h"
#include "reduced_rows.h"

enum { BLOCK = 64 /* rows that are reflected at a time: a column of so many numbers for each of theirs */ };

/* Squares and sums of numbers between have room; coefficients may be as large as the largest again. */
static const double LARGEST = 1e70, SMALLEST = 1e-70;

static inline double *zeros(ulam_context *ctx, int64_t count) {
  double *found = ulam_doubles(ctx, count);
  memset(found, 0, (size_t)count * sizeof *found);
  return found;
}

/* Whether all numbers of a column have a size that squares have room for. */
ULAM_CLONES static int is_moderate(const double *column) {
  int64_t wrong = 0;
  for (int i = 0; i < BLOCK; ++i) {
    double size = fabs(column[i]);
    wrong |= !(size < LARGEST) | ((size > 0) & (size < SMALLEST));
  }
  return wrong == 0;
}

ULAM_CLONES static double along(const double *restrict a, const double *restrict b) {
  double sums[LANES] = {0};
  for (int i = 0; i < BLOCK; i += LANES)
    for (int k = 0; k < LANES; ++k) sums[k] += a[i + k] * b[i + k];
  return ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

ULAM_CLONES static void subtract(double factor, const double *restrict a, double *restrict b) {
  for (int i = 0; i < BLOCK; ++i) b[i] -= factor * a[i];
}

/* total + by, in two numbers. */
static inline void increase(double *total, double *rounded, double by) {
  double sum = *total + by, kept = sum - *total;
  *rounded += (*total - (sum - kept)) + (by - kept);
  *total = sum;
}

/* Householder reflections of [triangle; block], of n columns. Rows of the triangle then change their sign, so that what
 * a block adds to them is as small as its rows are: its rounding errors are, too, and those of the sums are kept. */
static inline void reflect_block(int64_t n, double *block, double *triangle, double *all_rounded) {
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

#endif
