/* Products and triangular systems of dual matrices: those of their values, and of their tangents by the product rule. */
#define ULAM_DUAL
#include "../dense.h"

/* The routines for matrices of doubles; here they see every second double. */
#undef dense_view
#undef dense_of
#undef dense_transposed
#undef dense_block
#undef dense_multiply_add
#undef dense_solve_lower
#undef dense_solve_upper
typedef struct {
  double *data;
  int64_t rows_by, columns_by;
} dense_view;
void dense_multiply_add(ulam_context *ctx, int64_t m, int64_t n, int64_t k, double alpha, dense_view A, dense_view B,
                        dense_view C);
void dense_solve_lower(ulam_context *ctx, int64_t n, int64_t m, dense_view T, int unit_diagonal, dense_view B);
void dense_solve_upper(ulam_context *ctx, int64_t n, int64_t m, dense_view T, int unit_diagonal, dense_view B);

static dense_view part(dense_view_dual a, int offset) {
  dense_view view = {(double *)a.data + offset, 2 * a.rows_by, 2 * a.columns_by};
  return view;
}
static dense_view values(dense_view_dual a) { return part(a, 0); }
static dense_view tangents(dense_view_dual a) { return part(a, 1); }

/* (A B)' = A' B + A B' */
void dense_multiply_add_dual(ulam_context *ctx, int64_t m, int64_t n, int64_t k, double alpha, dense_view_dual A,
                             dense_view_dual B, dense_view_dual C) {
  dense_multiply_add(ctx, m, n, k, alpha, tangents(A), values(B), tangents(C));
  dense_multiply_add(ctx, m, n, k, alpha, values(A), tangents(B), tangents(C));
  dense_multiply_add(ctx, m, n, k, alpha, values(A), values(B), values(C));
}

/* B' := B' - T' B, of the triangle of T that counts. */
static void subtract_product(ulam_context *ctx, int64_t n, int64_t m, dense_view T, int lower, int unit_diagonal,
                             dense_view_dual B) {
  char *mark = ctx->arena_cursor;
  double *copied = ulam_doubles(ctx, n * n);
  dense_view triangle = {copied, 1, n};
  memset(copied, 0, (size_t)(n * n) * sizeof *copied);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = lower ? j : 0; i < (lower ? n : j + 1); ++i)
      if (i != j || !unit_diagonal) AT(triangle, i, j) = AT(T, i, j);
  dense_multiply_add(ctx, n, m, n, -1.0, triangle, values(B), tangents(B));
  ulam_release(ctx, mark);
}

/* (T^-1 B)' = T^-1 (B' - T' (T^-1 B)) */
void dense_solve_lower_dual(ulam_context *ctx, int64_t n, int64_t m, dense_view_dual T, int unit_diagonal,
                            dense_view_dual B) {
  dense_solve_lower(ctx, n, m, values(T), unit_diagonal, values(B));
  subtract_product(ctx, n, m, tangents(T), 1, unit_diagonal, B);
  dense_solve_lower(ctx, n, m, values(T), unit_diagonal, tangents(B));
}

void dense_solve_upper_dual(ulam_context *ctx, int64_t n, int64_t m, dense_view_dual T, int unit_diagonal,
                            dense_view_dual B) {
  dense_solve_upper(ctx, n, m, values(T), unit_diagonal, values(B));
  subtract_product(ctx, n, m, tangents(T), 0, unit_diagonal, B);
  dense_solve_upper(ctx, n, m, values(T), unit_diagonal, tangents(B));
}
