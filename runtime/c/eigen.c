/* Eigenvalues and eigenvectors of symmetric matrices: Householder reduction to a tridiagonal matrix, then the QR
 * algorithm with implicit Wilkinson shifts (Golub and Van Loan, "Matrix Computations", sections 8.3.1 to 8.3.3).
 * The signs of reflections and rotations are chosen such that eigenvectors have the signs that users of Stan know.
 */
#include <float.h>

#include "dense.h"

/* A := tridiagonal, by reflections; d its diagonal, e[0 .. n-2] beside it; Q the product of the reflections. Only the
 * lower triangle of A is used. `v` and `p` are scratch of length n. */
ULAM_CLONES static void tridiagonalize(int64_t n, double *A, double *Q, double *d, double *e, double *v, double *p) {
  dense_zero(Q, n * n);
  for (int64_t i = 0; i < n; ++i) Q[i + i * n] = 1;
  for (int64_t k = 0; k + 1 < n; ++k) {
    double *restrict column = A + k * n;
    double scale = 0, norm2 = 0;
    for (int64_t i = k + 1; i < n; ++i) scale = fabs(column[i]) > scale ? fabs(column[i]) : scale;
    d[k] = column[k];
    e[k] = column[k + 1];
    int64_t first = k + 2;
    double below = 0;
    for (int64_t i = first; i < n; ++i) below = fabs(column[i]) > below ? fabs(column[i]) : below;
    if (below == 0) continue; /* tridiagonal here already */
    for (int64_t i = k + 1; i < n; ++i) {
      v[i] = column[i] / scale;
      norm2 += v[i] * v[i];
    }
    double norm = v[k + 1] >= 0 ? -sqrt(norm2) : sqrt(norm2);
    e[k] = scale * norm;
    double half = norm2 - v[k + 1] * norm; /* v'v / 2 of the reflection's vector */
    v[k + 1] -= norm;
    /* p = A v / half; A -= v q' + q v' with q = p - (p'v / 2 half) v */
    for (int64_t i = k + 1; i < n; ++i) p[i] = 0;
    for (int64_t j = k + 1; j < n; ++j) {
      const double *restrict a = A + j * n;
      double vj = v[j], sum = a[j] * vj;
      for (int64_t i = j + 1; i < n; ++i) p[i] += a[i] * vj;
      for (int64_t i = j + 1; i < n; ++i) sum += a[i] * v[i];
      p[j] += sum;
    }
    double along = 0;
    for (int64_t i = k + 1; i < n; ++i) {
      p[i] /= half;
      along += p[i] * v[i];
    }
    along /= 2 * half;
    for (int64_t i = k + 1; i < n; ++i) p[i] -= along * v[i];
    for (int64_t j = k + 1; j < n; ++j) {
      double *restrict a = A + j * n;
      double vj = v[j], qj = p[j];
      for (int64_t i = j; i < n; ++i) a[i] -= v[i] * qj + p[i] * vj;
    }
    /* Q := Q (I - v v' / half) */
    for (int64_t i = 0; i < n; ++i) p[i] = 0;
    for (int64_t j = k + 1; j < n; ++j) {
      const double *restrict q = Q + j * n;
      for (int64_t i = 0; i < n; ++i) p[i] += q[i] * v[j];
    }
    for (int64_t j = k + 1; j < n; ++j) {
      double *restrict q = Q + j * n;
      double factor = v[j] / half;
      for (int64_t i = 0; i < n; ++i) q[i] -= p[i] * factor;
    }
  }
  if (n > 0) {
    d[n - 1] = A[n * n - 1];
    e[n - 1] = 0;
  }
}

/* left := c left - s right, right := s left + c right */
ULAM_CLONES static void rotate_columns(int64_t n, double *restrict left, double *restrict right, double c, double s) {
  for (int64_t k = 0; k < n; ++k) {
    double kept = left[k];
    left[k] = c * kept - s * right[k];
    right[k] = s * kept + c * right[k];
  }
}

/* c and s that rotate (p, q) into (r, 0): c p - s q = r, s p + c q = 0. */
static void find_rotation(double p, double q, double *c, double *s) {
  if (q == 0) {
    *c = p < 0 ? -1 : 1;
    *s = 0;
  } else if (p == 0) {
    *c = 0;
    *s = q < 0 ? 1 : -1;
  } else if (fabs(p) > fabs(q)) {
    double t = q / p, u = copysign(sqrt(1 + t * t), p);
    *c = 1 / u;
    *s = -t * *c;
  } else {
    double t = p / q, u = copysign(sqrt(1 + t * t), q);
    *s = -1 / u;
    *c = -t * *s;
  }
}

/* One implicit QR step on rows first to last of the tridiagonal matrix. */
static void qr_step(int64_t n, int64_t first, int64_t last, double *d, double *e, double *Q) {
  double half = 0.5 * (d[last - 1] - d[last]), beside = e[last - 1], shift = d[last];
  if (half == 0) {
    shift -= fabs(beside);
  } else if (beside != 0) {
    double sum = half + copysign(hypot(half, beside), half);
    shift -= beside / (sum / beside);
  }
  double x = d[first] - shift, z = e[first];
  for (int64_t k = first; k < last && z != 0; ++k) {
    double c, s;
    find_rotation(x, z, &c, &s);
    double below = s * d[k] + c * e[k], corner = s * e[k] + c * d[k + 1];
    d[k] = c * (c * d[k] - s * e[k]) - s * (c * e[k] - s * d[k + 1]);
    d[k + 1] = s * below + c * corner;
    e[k] = c * below - s * corner;
    if (k > first) e[k - 1] = c * e[k - 1] - s * z;
    x = e[k];
    if (k + 1 < last) { /* the bulge moves on */
      z = -s * e[k + 1];
      e[k + 1] *= c;
    }
    rotate_columns(n, Q + k * n, Q + (k + 1) * n, c, s);
  }
}

/* Returns 0 if an eigenvalue does not converge. */
static int diagonalize(int64_t n, double *Q, double *d, double *e) {
  int64_t last = n - 1, steps = 0;
  while (last > 0) {
    for (int64_t i = 0; i < last; ++i)
      if (fabs(e[i]) < DBL_MIN || fabs(e[i]) <= 0.5 * DBL_EPSILON * (fabs(d[i]) + fabs(d[i + 1])))
        e[i] = 0;
    while (last > 0 && e[last - 1] == 0) --last;
    if (last <= 0) break;
    if (++steps > 60 * n) return 0;
    int64_t first = last - 1;
    while (first > 0 && e[first - 1] != 0) --first;
    qr_step(n, first, last, d, e, Q);
  }
  return 1;
}

int32_t dense_eigen_symmetric(ulam_context *ctx, const char *name, const double *A, int64_t n, double *V, double *w) {
  for (int64_t i = 0; i < n * n; ++i)
    if (!isfinite(A[i])) return ulam_fail(ctx, ULAM_REJECT, "%s: the matrix has an element that is not finite", name);
  char *mark = ctx->arena_cursor;
  double *work = dense_copied(ctx, A, n * n), *e = ulam_doubles(ctx, n), *v = ulam_doubles(ctx, n),
         *p = ulam_doubles(ctx, n), scale = 0; /* squares neither overflow nor vanish */
  for (int64_t i = 0; i < n * n; ++i) scale = fabs(A[i]) > scale ? fabs(A[i]) : scale;
  if (scale > 0)
    for (int64_t i = 0; i < n * n; ++i) work[i] /= scale;
  tridiagonalize(n, work, V, w, e, v, p);
  int converged = diagonalize(n, V, w, e);
  for (int64_t i = 0; i < n; ++i) w[i] *= scale;
  for (int64_t i = 0; i < n; ++i) { /* ascending */
    int64_t smallest = i;
    for (int64_t j = i + 1; j < n; ++j)
      if (w[j] < w[smallest]) smallest = j;
    if (smallest == i) continue;
    double kept = w[i];
    w[i] = w[smallest];
    w[smallest] = kept;
    dense_copy(v, V + i * n, n);
    dense_copy(V + i * n, V + smallest * n, n);
    dense_copy(V + smallest * n, v, n);
  }
  ulam_release(ctx, mark);
  if (!converged) return ulam_fail(ctx, ULAM_REJECT, "%s: the QR algorithm did not converge", name);
  return ULAM_OK;
}

static int32_t eigen_symmetric(ulam_context *ctx, const char *name, const double *A, int64_t n, double *V, double *w) {
  int32_t status = dense_check_symmetric(ctx, name, A, n);
  return status == ULAM_OK ? dense_eigen_symmetric(ctx, name, A, n, V, w) : status;
}

ULAM_API int32_t KERNEL(eigenvalues_sym)(ulam_context *ctx, const double *A, int64_t n, double *w, double *V) {
  return eigen_symmetric(ctx, "eigenvalues_sym", A, n, V, w);
}

ULAM_API int32_t KERNEL(eigenvectors_sym)(ulam_context *ctx, const double *A, int64_t n, double *V, double *w) {
  return eigen_symmetric(ctx, "eigenvectors_sym", A, n, V, w);
}

ULAM_API int32_t KERNEL(eigendecompose_sym)(ulam_context *ctx, const double *A, int64_t n, double *V, double *w) {
  return eigen_symmetric(ctx, "eigendecompose_sym", A, n, V, w);
}
