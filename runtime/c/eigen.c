/* Eigenvalues and eigenvectors of symmetric matrices: Householder reduction to a tridiagonal matrix, then the QR
 * algorithm with implicit Wilkinson shifts (Golub and Van Loan, "Matrix Computations", sections 8.3.1 to 8.3.3).
 * The signs of reflections and rotations are chosen such that eigenvectors have the signs that users of Stan know.
 */
#include <float.h>

#include "dense.h"

/* v := the vector of a reflection I - v v' / half that takes x to a multiple of the first unit vector, which is returned;
 * half is v'v / 2. Where x is such a multiple, half is 0 and v is not set. v may be x. */
static double reflection(int64_t n, const double *x, double *v, double *half) {
  double scale = 0, below = 0, norm2 = 0;
  for (int64_t i = 0; i < n; ++i) scale = fabs(x[i]) > scale ? fabs(x[i]) : scale;
  for (int64_t i = 1; i < n; ++i) below = fabs(x[i]) > below ? fabs(x[i]) : below;
  *half = 0;
  if (below == 0) return x[0];
  for (int64_t i = 0; i < n; ++i) {
    v[i] = x[i] / scale;
    norm2 += v[i] * v[i];
  }
  double norm = v[0] >= 0 ? -sqrt(norm2) : sqrt(norm2);
  *half = norm2 - v[0] * norm;
  v[0] -= norm;
  return scale * norm;
}

/* From p = A v: q of the reflection's A - v q' - q v', in p's place. */
static void take_half_along(int64_t n, const double *v, double half, double *p) {
  double along = 0;
  for (int64_t i = 0; i < n; ++i) {
    p[i] /= half;
    along += p[i] * v[i];
  }
  along /= 2 * half;
  for (int64_t i = 0; i < n; ++i) p[i] -= along * v[i];
}

/* A := tridiagonal, by reflections; d its diagonal, e[0 .. n-2] beside it; Q the product of the reflections. Only the
 * lower triangle of A is used. */
ULAM_CLONES static void tridiagonalize_by_columns(ulam_context *ctx, int64_t n, double *A, double *Q, double *d, double *e) {
  char *mark = ctx->arena_cursor;
  double *v = ulam_doubles(ctx, n), *p = ulam_doubles(ctx, n);
  dense_zero(Q, n * n);
  for (int64_t i = 0; i < n; ++i) Q[i + i * n] = 1;
  for (int64_t k = 0; k + 1 < n; ++k) {
    double *restrict column = A + k * n, half;
    d[k] = column[k];
    e[k] = reflection(n - k - 1, column + k + 1, v + k + 1, &half);
    if (half == 0) continue; /* tridiagonal here already */
    for (int64_t i = k + 1; i < n; ++i) p[i] = 0; /* A v */
    for (int64_t j = k + 1; j < n; ++j) {
      const double *restrict a = A + j * n;
      double vj = v[j], sum = a[j] * vj;
      for (int64_t i = j + 1; i < n; ++i) p[i] += a[i] * vj;
      for (int64_t i = j + 1; i < n; ++i) sum += a[i] * v[i];
      p[j] += sum;
    }
    take_half_along(n - k - 1, v + k + 1, half, p + k + 1);
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
  ulam_release(ctx, mark);
}

#ifdef ULAM_FAST
#include "fast/tridiagonal.h"
#else
#define tridiagonalize tridiagonalize_by_columns
/* left := c left - s right, right := s left + c right */
ULAM_CLONES static void rotate(int64_t n, double *restrict left, double *restrict right, double c, double s) {
  for (int64_t k = 0; k < n; ++k) {
    double kept = left[k];
    left[k] = c * kept - s * right[k];
    right[k] = s * kept + c * right[k];
  }
}

static void dense_rotate_columns(ulam_context *ctx, int64_t n, dense_rotations *rotations, double *Q) {
  (void)ctx;
  for (int64_t t = 0; t < rotations->steps; ++t)
    for (int64_t k = rotations->first[t]; k < rotations->last[t]; ++k)
      rotate(n, Q + k * n, Q + (k + 1) * n, rotations->c[k + t * n], rotations->s[k + t * n]);
}
#endif

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

/* One implicit QR step on rows first to last of the tridiagonal matrix; its rotations are added to the others. */
static void qr_step(int64_t n, int64_t first, int64_t last, double *d, double *e, dense_rotations *rotations) {
  double half = 0.5 * (d[last - 1] - d[last]), beside = e[last - 1], shift = d[last];
  if (half == 0) {
    shift -= fabs(beside);
  } else if (beside != 0) {
    double sum = half + copysign(hypot(half, beside), half);
    shift -= beside / (sum / beside);
  }
  double x = d[first] - shift, z = e[first];
  int64_t k = first, step = dense_add_step(rotations, n);
  double *cosines = rotations->c + step * n, *sines = rotations->s + step * n;
  for (; k < last && z != 0; ++k) {
    find_rotation(x, z, &cosines[k], &sines[k]);
    double c = cosines[k], s = sines[k];
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
  }
  rotations->first[step] = first;
  rotations->last[step] = k;
}

/* Whether e[i] parts the matrix: then it is 0 from now on, also when steps below have changed d[i + 1]. */
static int parts(int64_t i, const double *d, double *e) {
  if (fabs(e[i]) < DBL_MIN || fabs(e[i]) <= 0.5 * DBL_EPSILON * (fabs(d[i]) + fabs(d[i + 1]))) e[i] = 0;
  return e[i] == 0;
}

/* Returns 0 if an eigenvalue does not converge. */
static int diagonalize(ulam_context *ctx, int64_t n, double *Q, double *d, double *e) {
  char *mark = ctx->arena_cursor;
  dense_rotations rotations = {.c = ulam_doubles(ctx, n * DENSE_STEPS), .s = ulam_doubles(ctx, n * DENSE_STEPS)};
  int64_t last = n - 1, steps = 0;
  while (last > 0) {
    while (last > 0 && parts(last - 1, d, e)) --last;
    if (last <= 0 || ++steps > 60 * n) break;
    int64_t first = last - 1;
    while (first > 0 && !parts(first - 1, d, e)) --first;
    qr_step(n, first, last, d, e, &rotations);
    if (rotations.steps < DENSE_STEPS) continue;
    dense_rotate_columns(ctx, n, &rotations, Q);
    rotations.steps = 0;
  }
  dense_rotate_columns(ctx, n, &rotations, Q);
  ulam_release(ctx, mark);
  return last <= 0;
}

int32_t dense_eigen_symmetric(ulam_context *ctx, const char *name, const double *A, int64_t n, double *V, double *w) {
  for (int64_t i = 0; i < n * n; ++i)
    if (!isfinite(A[i])) return ulam_fail(ctx, ULAM_REJECT, "%s: the matrix has an element that is not finite", name);
  char *mark = ctx->arena_cursor;
  double *work = dense_copied(ctx, A, n * n), *e = ulam_doubles(ctx, n), *v = ulam_doubles(ctx, n),
         scale = 0; /* squares neither overflow nor vanish */
  for (int64_t i = 0; i < n * n; ++i) scale = fabs(A[i]) > scale ? fabs(A[i]) : scale;
  if (scale > 0)
    for (int64_t i = 0; i < n * n; ++i) work[i] /= scale;
  tridiagonalize(ctx, n, work, V, w, e);
  int converged = diagonalize(ctx, n, V, w, e);
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
