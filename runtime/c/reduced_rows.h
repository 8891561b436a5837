/* How linear_design.c leaves reduced rows to reduced_squares.c: each `width` numbers, then as many for the coefficients
 * that fit best; of a small triangle its columns, too, `width` numbers each. Of rows in twice the digits, which are
 * relative to 0, what is to be added to them follows, in the same order. Of rows that are relative to 0, too, all this
 * comes again for these, and then the squares of columns. */
#ifndef ULAM_REDUCED_ROWS_H
#define ULAM_REDUCED_ROWS_H

#include <stdint.h>

enum { LANES = 8, SMALL = 16 };

static inline int64_t reduced_width(int64_t shared) { return (shared + LANES) & -LANES; }
static inline int has_columns(int64_t shared) { return reduced_width(shared) <= SMALL; }

/* Of shared rows relative to one point, without second numbers. */
static inline int64_t reduced_table_size(int64_t shared) {
  return ((shared + 1) * (1 + has_columns(shared)) + 1) * reduced_width(shared);
}

static inline int64_t group_table_size(int64_t room, int64_t own, int64_t shared) {
  return room * own * (own + shared + 2);
}

/* Whether a table of this size has second numbers. */
static inline int is_twofold(int64_t size, int64_t shared) {
  return size == reduced_table_size(shared) + (shared + 1) * reduced_width(shared);
}

/* Whether it has rows relative to two points. */
static inline int has_two_points(int64_t size, int64_t shared) {
  return size == 2 * reduced_table_size(shared) + reduced_width(shared);
}

#endif
