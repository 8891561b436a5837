/* What cancels in the rows of a normal linear model, by rows that are reduced already. */
#ifndef ULAM_CANCELLING_H
#define ULAM_CANCELLING_H

#include <math.h>
#include <stdint.h>

#include "reflections.h"

static const double FULL_RANK = 1e-11;

/* As most_that_may_cancel, by the number of rows: n. */
static const double NEARLY_DEPEND = 0.5, LEAST_DEPEND = 30;   /* times n, at least: in twice the digits */
static const double LARGE_FIT = 0.4, LEAST_FIT = 10;          /* times the root of n, at least: relative to 0, too */

/* Solves `count` rows of n for the coefficients of as many columns, given those behind. Those of columns that are
 * combinations of others are 0; `norms`: squares of what columns were, NULL: all that they were is in these rows. */
static inline void solve(const double *rows, int64_t count, int64_t n, const double *behind, const double *norms,
                  double *found) {
  for (int64_t p = count; p-- > 0;) {
    const double *row = rows + p * n;
    double sum = row[n - 1], size = 0;
    for (int64_t q = p + 1; q < count; ++q) sum -= row[q] * found[q];
    for (int64_t q = count; q < n - 1; ++q) sum -= row[q] * behind[q - count];
    if (norms) size = sqrt(norms[p]);
    for (int64_t q = 0; q <= p; ++q) size = fmax(size, fabs(rows[q * n + p]));
    double value = sum / row[p];
    found[p] = fabs(row[p]) > FULL_RANK * size && fabs(value) < LARGEST ? value : 0;
  }
}

static inline double larger(double most, double size) { return size > most || isnan(size) ? size : most; }

/* How much larger than what coefficients that fit best leave of y they are: y, and what these coefficients make of
 * columns; how much larger than y these are in all; how much larger than what other columns leave of them columns are. Columns
 * that are combinations of others, but for rounding, do not count. */
typedef struct {
  double y, fit, fit_of_y, columns;
} cancelling;

static inline void count_column(cancelling *found, double norm, double part, double y, double left, double coefficient) {
  if (norm * fabs(coefficient) > 0) {
    found->fit = larger(found->fit, norm * fabs(coefficient) / left);
    found->fit_of_y += norm * fabs(coefficient) / y;
  }
  if (part > DEPENDENT * norm) found->columns = larger(found->columns, norm / part);
}

/* Whether rows of one reduction are as exact as a loop over all of them. */
static inline int cancels_little(const cancelling *much, double rows) {
  return larger(larger(much->y, much->fit), much->columns) <= most_that_may_cancel(rows);
}

/* Whether rows relative to the coefficients that fit best are, near these; and far from them, too. */
static inline int are_apart_enough(const cancelling *much, double rows) {
  return much->columns <= fmax(LEAST_DEPEND, NEARLY_DEPEND * rows);
}

static inline int is_small_fit(const cancelling *much, double rows) {
  return much->fit_of_y <= fmax(LEAST_FIT, LARGE_FIT * sqrt(rows));
}

#endif
