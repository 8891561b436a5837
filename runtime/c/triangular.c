/* Triangular systems: blocked, all but the diagonal blocks is matrix product. */
#include "dense.h"

enum { BLOCK = 32, LANES = 8 };

typedef double v8 __attribute__((vector_size(64), aligned(8)));

/* One diagonal block, as a lower triangle: an upper one is taken in reversed order. */
typedef struct {
  int64_t size;
  int reversed;
  double t[BLOCK * BLOCK]; /* column-major, leading dimension BLOCK */
} diagonal_block;

static inline int64_t place(const diagonal_block *block, int64_t i) {
  return block->reversed ? block->size - 1 - i : i;
}

static void take_block(diagonal_block *block, int64_t size, dense_view T, int reversed, int unit_diagonal) {
  block->size = size;
  block->reversed = reversed;
  for (int64_t j = 0; j < size; ++j) {
    for (int64_t i = j + 1; i < size; ++i) block->t[i + j * BLOCK] = AT(T, place(block, i), place(block, j));
    block->t[j + j * BLOCK] = unit_diagonal ? 1.0 : AT(T, place(block, j), place(block, j));
  }
}

ULAM_CLONES static void solve_one(const diagonal_block *block, double *restrict x) {
  for (int64_t j = 0; j < block->size; ++j) {
    const double *restrict t = block->t + j * BLOCK;
    double solved = x[j] /= t[j];
    for (int64_t i = j + 1; i < block->size; ++i) x[i] -= solved * t[i];
  }
}

ULAM_CLONES static void solve_lanes(const diagonal_block *block, v8 *restrict x) {
  for (int64_t j = 0; j < block->size; ++j) {
    const double *restrict t = block->t + j * BLOCK;
    v8 solved = x[j] / t[j];
    x[j] = solved;
    for (int64_t i = j + 1; i < block->size; ++i) x[i] -= solved * t[i];
  }
}

/* B := block^-1 B, for `size` rows and m columns of B: a few columns at a time, copied side by side. */
static void solve_block(const diagonal_block *block, int64_t m, dense_view B) {
  int64_t size = block->size;
  if (m == 1) {
    double x[BLOCK];
    for (int64_t i = 0; i < size; ++i) x[i] = AT(B, place(block, i), 0);
    solve_one(block, x);
    for (int64_t i = 0; i < size; ++i) AT(B, place(block, i), 0) = x[i];
    return;
  }
  v8 lanes[BLOCK] = {{0}};
  for (int64_t c = 0; c < m; c += LANES) {
    int64_t present = m - c < LANES ? m - c : LANES;
    for (int64_t i = 0; i < size; ++i)
      for (int64_t k = 0; k < present; ++k) lanes[i][k] = AT(B, place(block, i), c + k);
    solve_lanes(block, lanes);
    for (int64_t i = 0; i < size; ++i)
      for (int64_t k = 0; k < present; ++k) AT(B, place(block, i), c + k) = lanes[i][k];
  }
}

void dense_solve_lower(ulam_context *ctx, int64_t n, int64_t m, dense_view T, int unit_diagonal, dense_view B) {
  diagonal_block block;
  for (int64_t j = 0; j < n; j += BLOCK) {
    int64_t size = n - j < BLOCK ? n - j : BLOCK, below = n - j - size;
    dense_view solved = dense_block(B, j, 0);
    take_block(&block, size, dense_block(T, j, j), 0, unit_diagonal);
    solve_block(&block, m, solved);
    dense_multiply_add(ctx, below, m, size, -1.0, dense_block(T, j + size, j), solved, dense_block(B, j + size, 0));
  }
}

void dense_solve_upper(ulam_context *ctx, int64_t n, int64_t m, dense_view T, int unit_diagonal, dense_view B) {
  diagonal_block block;
  for (int64_t end = n; end > 0; end -= BLOCK) {
    int64_t size = end < BLOCK ? end : BLOCK, begin = end - size;
    dense_view solved = dense_block(B, begin, 0);
    take_block(&block, size, dense_block(T, begin, begin), 1, unit_diagonal);
    solve_block(&block, m, solved);
    dense_multiply_add(ctx, begin, m, size, -1.0, dense_block(T, 0, begin), solved, B);
  }
}
