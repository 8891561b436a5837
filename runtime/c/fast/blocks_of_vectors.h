/* Building blocks of dense linear algebra for levels 3 and 4, one set of functions for each length of vectors that the
 * processor may have: see blocks.h. */
#ifndef ULAM_BLOCKS_OF_VECTORS_H
#define ULAM_BLOCKS_OF_VECTORS_H

#include "../dense.h"

enum {
  DENSE_LOWER = 1, /* of a square C what is above the diagonal may be written or not */
  DENSE_FRESH = 2, /* C has no values yet */
};

#define ULAM_BLOCKS(vectors)                                                                                            \
  /* C += alpha A B; `how`: a sum of those above */                                                                      \
  void ulam_##vectors##_multiply_add(ulam_context *ctx, int64_t m, int64_t n, int64_t k, double alpha, dense_view A,    \
                                     dense_view B, dense_view C, int how);                                              \
  void ulam_##vectors##_solve_lower(ulam_context *ctx, int64_t n, int64_t m, dense_view T, int unit_diagonal,           \
                                    dense_view B);                                                                      \
  void ulam_##vectors##_solve_upper(ulam_context *ctx, int64_t n, int64_t m, dense_view T, int unit_diagonal,           \
                                    dense_view B);                                                                      \
  /* L := the Cholesky factor of A (lower triangle); the first column whose pivot is not positive, or -1 */             \
  int64_t ulam_##vectors##_factor(ulam_context *ctx, int64_t n, const double *A, double *L);                            \
  /* G := the adjoint of the matrix (lower triangle) from that of its factor L, in place */                             \
  void ulam_##vectors##_pull_back(ulam_context *ctx, int64_t n, const double *L, double *G);                              \
  /* X := (L L')^-1 */                                                                                                  \
  void ulam_##vectors##_inverse_of_factor(ulam_context *ctx, int64_t n, const double *L, double *X);                    \
  /* see dense.h */                                                                                                     \
  int ulam_##vectors##_factor_few(int64_t n, const double *A, const double *b, double *L, double *z);                   \
  int ulam_##vectors##_pull_back_terms(int64_t n, const double *L, const double *z, double of_square, double of_logs,   \
                                       double *A_adj, double *b_adj);                                                   \
  void ulam_##vectors##_rotate_columns(ulam_context *ctx, int64_t n, dense_rotations *rotations, double *Q);            \
  void ulam_##vectors##_multiply_symmetric(int64_t n, const double *A, int64_t leading, const double *x, double *p);    \
  void ulam_##vectors##_add_columns(const dense_columns *columns, int sides, const double *const *factors,              \
                                    double *const *y);                                                                  \
  void ulam_##vectors##_dot_columns(const dense_columns *columns, int sides, const double *const *y,                    \
                                    double *const *factors_adj);

ULAM_BLOCKS(baseline)
ULAM_BLOCKS(avx2)
ULAM_BLOCKS(avx512)

#endif
