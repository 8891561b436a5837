/* Groups of rows that are equal in a column (equal_rows.c). */
#ifndef ULAM_EQUAL_ROWS_H
#define ULAM_EQUAL_ROWS_H

#include "context.h"

/* Of keys that a row does not have; passes/loops/data_choices.py has it, too. */
#define NO_KEY INT64_MIN

static inline uint64_t mixed(uint64_t x) { /* SplitMix64 */
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

typedef struct {
  const void *x;
  int64_t row;
  int wide; /* elements of 8 bytes, else of 4 */
  const int32_t *before; /* the groups by the columns that came before; NULL: all rows are in one */
} key_column;

/* Splits `known` groups further by a column of k elements per row, one after the other; `groups` may be those before. How
 * many there are, numbered as they begin; -1 if they are surely more than `most`, or so many that they are not worth
 * counting, or if `known` is. */
int64_t ulam_group_columns(ulam_context *ctx, key_column key, int64_t n, int64_t k, int64_t column, int64_t known,
                           int64_t most, int32_t *groups);

#endif
