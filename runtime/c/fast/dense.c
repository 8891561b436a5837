/* Dense linear algebra of levels 3 and 4: the functions for the vectors that this processor has. */
#define ULAM_FAST
#include "blocks_of_vectors.h"

#ifdef ULAM_SEVERAL_PROCESSORS
#define HAS(feature) __builtin_cpu_supports(feature)
#define CALL(name, ...)                                                                                     \
  (HAS("avx512f") && HAS("avx512dq") && HAS("avx512vl") ? ulam_avx512_##name                                \
   : HAS("avx2") && HAS("fma")                          ? ulam_avx2_##name                                  \
                                                        : ulam_baseline_##name)(__VA_ARGS__)
#else
#define CALL(name, ...) ulam_baseline_##name(__VA_ARGS__)
#endif

void dense_multiply_add(ulam_context *ctx, int64_t m, int64_t n, int64_t k, double alpha, dense_view A, dense_view B,
                        dense_view C) {
  CALL(multiply_add, ctx, m, n, k, alpha, A, B, C, 0);
}
void dense_multiply(ulam_context *ctx, int64_t m, int64_t n, int64_t k, dense_view A, dense_view B, dense_view C) {
  CALL(multiply_add, ctx, m, n, k, 1.0, A, B, C, DENSE_FRESH);
}
void dense_multiply_add_lower(ulam_context *ctx, int64_t n, int64_t k, double alpha, dense_view A, dense_view B,
                              dense_view C) {
  CALL(multiply_add, ctx, n, n, k, alpha, A, B, C, DENSE_LOWER);
}
void dense_solve_lower(ulam_context *ctx, int64_t n, int64_t m, dense_view T, int unit_diagonal, dense_view B) {
  CALL(solve_lower, ctx, n, m, T, unit_diagonal, B);
}
void dense_solve_upper(ulam_context *ctx, int64_t n, int64_t m, dense_view T, int unit_diagonal, dense_view B) {
  CALL(solve_upper, ctx, n, m, T, unit_diagonal, B);
}
int64_t dense_factor(ulam_context *ctx, int64_t n, const double *A, double *L) {
  return CALL(factor, ctx, n, A, L);
}
void dense_pull_back_factor(ulam_context *ctx, int64_t n, const double *L, double *G) {
  CALL(pull_back, ctx, n, L, G);
}
void dense_inverse_of_factor(ulam_context *ctx, int64_t n, const double *L, double *X) {
  CALL(inverse_of_factor, ctx, n, L, X);
}
int dense_factor_few(int64_t n, const double *A, const double *b, double *L, double *z) {
  return CALL(factor_few, n, A, b, L, z);
}
int dense_pull_back_few(int64_t n, const double *L, const double *z, double of_square, double of_logs, double *A_adj,
                        double *b_adj) {
  return CALL(pull_back_terms, n, L, z, of_square, of_logs, A_adj, b_adj);
}
void dense_rotate_columns(ulam_context *ctx, int64_t n, dense_rotations *rotations, double *Q) {
  CALL(rotate_columns, ctx, n, rotations, Q);
}
void dense_multiply_symmetric(int64_t n, const double *A, int64_t leading, const double *x, double *p) {
  CALL(multiply_symmetric, n, A, leading, x, p);
}
void dense_add_columns(const dense_columns *columns, int sides, const double *const *factors, double *const *y) {
  CALL(add_columns, columns, sides, factors, y);
}
void dense_dot_columns(const dense_columns *columns, int sides, const double *const *y, double *const *factors_adj) {
  CALL(dot_columns, columns, sides, y, factors_adj);
}
