/* How linear_design.c leaves reduced rows to reduced_squares.c: each `width` numbers, then as many for the coefficients
 * that fit best; of a small triangle its columns, too, `width` numbers each. */
#ifndef ULAM_REDUCED_ROWS_H
#define ULAM_REDUCED_ROWS_H

#include <stdint.h>

enum { LANES = 8, SMALL = 16 };

static inline int64_t reduced_width(int64_t shared) { return (shared + LANES) & -LANES; }
static inline int has_columns(int64_t shared) { return reduced_width(shared) <= SMALL; }

#endif
