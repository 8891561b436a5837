/* The sums of the squares of the rows that row_kinds.c has reduced, of each kind, and half of their gradients, in one pass.
 *
 * Each number is there for all kinds side by side, `room` of them, a multiple of LANES: rows of a triangle, with y last,
 * then the coefficients that fit best, from which rows are counted. */
#include "dense.h"
#include "reduced_rows.h"

#ifdef ULAM_DUAL
#define CLONES
#else
#define CLONES ULAM_CLONES
#endif
#define INLINE static inline __attribute__((always_inline))

/* Of LANES kinds, whose numbers begin at these places. */
INLINE void squares_of_lanes(int64_t columns, int64_t room, const number *restrict rows, const number *restrict fits,
                             const number *restrict b, number *restrict squares, number *restrict half) {
  number sums[LANES] = {0};
  for (int64_t p = 0; p <= columns; ++p) {
    number rest[LANES];
    const number *y = rows + (columns - p) * room;
    for (int l = 0; l < LANES; ++l) rest[l] = -y[l];
    for (int64_t q = p; q < columns; ++q)
      for (int l = 0; l < LANES; ++l) rest[l] += rows[(q - p) * room + l] * (b[q * room + l] - fits[q * room + l]);
    for (int l = 0; l < LANES; ++l) sums[l] += rest[l] * rest[l];
    for (int64_t q = p; q < columns; ++q)
      for (int l = 0; l < LANES; ++l) half[q * room + l] += rows[(q - p) * room + l] * rest[l];
    rows = y + room;
  }
  for (int l = 0; l < LANES; ++l) squares[l] = sums[l];
}

CLONES static void all_squares(int64_t columns, int64_t room, const number *table, const number *b, number *squares,
                               number *half) {
  const number *fits = table + (columns + 1) * (columns + 2) / 2 * room;
  for (int64_t j = 0; j < room; j += LANES)
    squares_of_lanes(columns, room, table + j, fits + j, b + j, squares + j, half + j);
}

CLONES static number sum_of_squares(int64_t count, const number *restrict x) {
  number sums[LANES] = {0}, total = 0;
  for (int64_t k = 0; k < count; k += LANES)
    for (int l = 0; l < LANES; ++l) sums[l] += x[k + l] * x[k + l];
  for (int l = 0; l < LANES; ++l) total += sums[l];
  return total;
}

/* `t`: the size of the table; `size`: the sum of the squares of all coefficients. */
ULAM_API void KERNEL(kind_squares)(ulam_context *ctx, const number *table, const number *b, int64_t t, int64_t columns,
                                   int64_t room, number *squares, number *size, number *half) {
  (void)ctx, (void)t;
  dense_zero(half, columns * room);
  all_squares(columns, room, table, b, squares, half);
  *size = sum_of_squares(columns * room, b);
}

CLONES static void add_gradient(int64_t columns, int64_t room, const number *restrict half,
                                const number *restrict squares_adj, number *restrict b_adj) {
  for (int64_t q = 0; q < columns; ++q)
    for (int64_t j = 0; j < room; ++j)
      b_adj[q * room + j] += squares_adj[j] == 0 ? 0 : 2 * squares_adj[j] * half[q * room + j];
}

/* The table is data. Where a sum is not used, nothing of what it was made of counts, finite or not. */
ULAM_API void KERNEL(kind_squares_pullback)(ulam_context *ctx, const number *table, const number *b, int64_t t,
                                            int64_t columns, int64_t room, const number *squares, const number *size,
                                            const number *half, number *table_adj, number *b_adj,
                                            const number *squares_adj, const number *size_adj,
                                            const number *half_adj) {
  (void)ctx, (void)table, (void)t, (void)squares, (void)size, (void)table_adj, (void)half_adj;
  if (b_adj == NULL) return;
  if (squares_adj != NULL) add_gradient(columns, room, half, squares_adj, b_adj);
  if (size_adj == NULL || *size_adj == 0) return;
  for (int64_t k = 0; k < columns * room; ++k) b_adj[k] += 2 * *size_adj * b[k];
}
