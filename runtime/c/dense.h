/* Dense linear algebra inside the runtime: strided views and the building blocks of the kernels.
 *
 * A matrix is column-major. A view has a stride per dimension, so that a transpose is a swap of strides, a block is an
 * offset, and one routine serves all of them. Scratch memory comes from the arena, which the caller marks and releases.
 */
#ifndef ULAM_DENSE_H
#define ULAM_DENSE_H

#include <stdint.h>
#include <string.h>

#include "number.h"
#include "context.h"

#ifdef ULAM_DUAL
#define dense_view dense_view_dual
#define dense_of dense_of_dual
#define dense_transposed dense_transposed_dual
#define dense_block dense_block_dual
#define dense_multiply_add dense_multiply_add_dual
#define dense_solve_lower dense_solve_lower_dual
#define dense_solve_upper dense_solve_upper_dual
#define dense_cholesky dense_cholesky_dual
#define dense_check_symmetric dense_check_symmetric_dual
#define dense_inverse_spd dense_inverse_spd_dual
#define dense_lu dense_lu_dual
#define dense_lu_solve dense_lu_solve_dual
#define dense_lu_solve_transposed dense_lu_solve_transposed_dual
#endif

/* What levels 3 and 4 call (see fast/): the same mathematics with other bits. */
#ifdef ULAM_FAST
#define dense_multiply_add dense_multiply_add_fast
#define dense_multiply_add_lower dense_multiply_add_lower_fast
#define dense_multiply dense_multiply_fast
#define dense_solve_lower dense_solve_lower_fast
#define dense_solve_upper dense_solve_upper_fast
#define dense_factor dense_factor_fast
#define dense_pull_back_factor dense_pull_back_factor_fast
#define dense_inverse_of_factor dense_inverse_of_factor_fast
#define dense_factor_few dense_factor_few_fast
#define dense_pull_back_few dense_pull_back_few_fast
#define dense_cholesky dense_cholesky_fast
#define dense_inverse_spd dense_inverse_spd_fast
#define dense_lu dense_lu_fast
#define dense_lu_solve dense_lu_solve_fast
#define dense_lu_solve_transposed dense_lu_solve_transposed_fast
#define dense_eigen_symmetric dense_eigen_symmetric_fast
#define dense_rotate_columns dense_rotate_columns_fast
#define dense_multiply_symmetric dense_multiply_symmetric_fast
#endif

/* Hot loops are compiled for several generations of x86; the loader picks. Vectors are written out or element-wise and
 * nothing is contracted or re-associated, so all of them give the same bits. ULAM_ONE_PROCESSOR: only what the compiler's
 * options ask for. */
#if !defined(ULAM_ONE_PROCESSOR) && defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__)
#define ULAM_SEVERAL_PROCESSORS 1 /* code may ask which one it runs on */
#define ULAM_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ULAM_CLONES
#endif

typedef struct {
  number *data;
  int64_t rows_by, columns_by; /* distance of neighbours in a column; in a row */
} dense_view;

static inline dense_view dense_of(const number *data, int64_t leading) {
  dense_view view = {(number *)data, 1, leading};
  return view;
}
static inline dense_view dense_transposed(dense_view a) {
  dense_view view = {a.data, a.columns_by, a.rows_by};
  return view;
}
static inline dense_view dense_block(dense_view a, int64_t row, int64_t column) {
  dense_view view = {a.data + row * a.rows_by + column * a.columns_by, a.rows_by, a.columns_by};
  return view;
}
#define AT(view, i, j) ((view).data[(i) * (view).rows_by + (j) * (view).columns_by])

/* C += alpha A B, with A of m x k and B of k x n. C overlaps neither. */
void dense_multiply_add(ulam_context *ctx, int64_t m, int64_t n, int64_t k, double alpha, dense_view A, dense_view B,
                        dense_view C);

#ifdef ULAM_FAST
/* C := A B. */
void dense_multiply(ulam_context *ctx, int64_t m, int64_t n, int64_t k, dense_view A, dense_view B, dense_view C);
/* C += alpha A B for a square C, of which what is above the diagonal may be written or not. */
void dense_multiply_add_lower(ulam_context *ctx, int64_t n, int64_t k, double alpha, dense_view A, dense_view B,
                              dense_view C);
/* L := the Cholesky factor of A (lower triangle); the first column whose pivot is not positive, or -1. */
int64_t dense_factor(ulam_context *ctx, int64_t n, const double *A, double *L);
/* The lower triangle of G, the adjoint of the factor L, := the adjoint of the matrix. */
void dense_pull_back_factor(ulam_context *ctx, int64_t n, const double *L, double *G);
/* X := (L L')^-1 for a lower triangular L. */
void dense_inverse_of_factor(ulam_context *ctx, int64_t n, const double *L, double *X);
/* normal_terms, and its pullback, of one vector and a matrix of few rows: L and z = L^-1 b; what the adjoints of z'z and
 * of the sum of L's logarithms add to those of A's lower triangle and of b. 0, and nothing done, if it is not for this. */
int dense_factor_few(int64_t n, const double *A, const double *b, double *L, double *z);
int dense_pull_back_few(int64_t n, const double *L, const double *z, double of_square, double of_logs, double *A_adj,
                        double *b_adj);
#endif

/* B := T^-1 B for a lower or an upper triangular T of n x n, B of n x m; the other triangle of T is not read. */
void dense_solve_lower(ulam_context *ctx, int64_t n, int64_t m, dense_view T, int unit_diagonal, dense_view B);
void dense_solve_upper(ulam_context *ctx, int64_t n, int64_t m, dense_view T, int unit_diagonal, dense_view B);

/* L := Cholesky factor of the symmetric A (of which the lower triangle is read), with a zero upper triangle; a matrix
 * that is not positive definite is a rejection. `name` is the function's, for the message. */
int32_t dense_cholesky(ulam_context *ctx, const char *name, const number *A, int64_t n, number *L);
int32_t dense_check_symmetric(ulam_context *ctx, const char *name, const number *A, int64_t n);
int32_t dense_inverse_spd(ulam_context *ctx, const char *name, const number *A, int64_t n, number *out);

/* LU := factors of P A in place (unit lower and upper triangle); row i was exchanged with row pivots[i], in order.
 * Returns the sign of the permutation. A singular matrix gives a zero on the diagonal of U. */
int dense_lu(ulam_context *ctx, int64_t n, number *LU, int64_t *pivots);
/* B := A^-1 B, or A'^-1 B, from these factors. */
void dense_lu_solve(ulam_context *ctx, int64_t n, int64_t m, const number *LU, const int64_t *pivots, dense_view B);
void dense_lu_solve_transposed(ulam_context *ctx, int64_t n, int64_t m, const number *LU, const int64_t *pivots,
                               dense_view B);

/* Rotations of some QR steps, in the order of the steps: step t rotates columns k and k + 1, for k from first[t] to last[t] - 1,
 * by the cosine c[k + t n] and the sine s[k + t n]; beyond, these are 1 and 0. */
enum { DENSE_STEPS = 32 }; /* an even number */
typedef struct {
  int64_t steps, first[DENSE_STEPS], last[DENSE_STEPS];
  double *c, *s;
} dense_rotations;
/* The number of a new step, without rotations yet. */
static inline int64_t dense_add_step(dense_rotations *rotations, int64_t n) {
  int64_t step = rotations->steps++;
  for (int64_t k = 0; k < n; ++k) rotations->c[k + step * n] = 1, rotations->s[k + step * n] = 0;
  rotations->first[step] = n;
  rotations->last[step] = 0;
  return step;
}
#ifdef ULAM_FAST
/* Q := Q times these. */
void dense_rotate_columns(ulam_context *ctx, int64_t n, dense_rotations *rotations, double *Q);
/* p := A x for a symmetric A with columns at a distance of `leading`, of which the lower triangle is read. */
void dense_multiply_symmetric(int64_t n, const double *A, int64_t leading, const double *x, double *p);
#endif

/* Some rows of columns, the first of which are at x[offsets[c]]: columns 0 to count - 1, or those of these numbers. */
typedef struct {
  const double *x;
  const int64_t *offsets, *numbers;
  int64_t count, rows, stride;
} dense_columns;
/* Of each side, at most two, y := the product of columns and factors, factors_adj += that of y and columns; of levels 3
 * and 4. */
void dense_add_columns(const dense_columns *columns, int sides, const double *const *factors, double *const *y);
void dense_dot_columns(const dense_columns *columns, int sides, const double *const *y, double *const *factors_adj);

/* Eigenvalues in ascending order and orthonormal eigenvectors, in V's columns, of the symmetric A. */
int32_t dense_eigen_symmetric(ulam_context *ctx, const char *name, const double *A, int64_t n, double *V, double *w);

static inline void dense_zero(number *x, int64_t count) { memset(x, 0, (size_t)count * sizeof *x); }
static inline void dense_copy(number *to, const number *from, int64_t count) {
  memcpy(to, from, (size_t)count * sizeof *to);
}
static inline number *dense_numbers(ulam_context *ctx, int64_t count) {
  return ulam_alloc(ctx, count * (int64_t)sizeof(number));
}
static inline number *dense_zeros(ulam_context *ctx, int64_t count) {
  number *x = dense_numbers(ctx, count);
  dense_zero(x, count);
  return x;
}
static inline number *dense_copied(ulam_context *ctx, const number *from, int64_t count) {
  number *x = dense_numbers(ctx, count);
  dense_copy(x, from, count);
  return x;
}

#endif
