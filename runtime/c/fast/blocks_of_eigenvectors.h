/* What the decomposition of symmetric matrices does with all of a matrix, for one length of vectors: the end of blocks.h. */

enum { ROTATED = W == 4 ? 3 : 4 }; /* vectors of rows that are rotated together: what is kept of them stays in registers */

/* p := A x for a symmetric A, of which the lower triangle is read; four columns at a time. */
void BLOCKS(multiply_symmetric)(int64_t n, const double *A, int64_t leading, const double *x, double *restrict p) {
  for (int64_t i = 0; i < n; ++i) p[i] = 0;
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) {
    const double *a0 = A + j * leading, *a1 = a0 + leading, *a2 = a1 + leading, *a3 = a2 + leading;
    double x0 = x[j], x1 = x[j + 1], x2 = x[j + 2], x3 = x[j + 3];
    vec s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    int64_t i = j + 4;
    for (; i + W <= n; i += W) {
      vec v0 = *(const vec *)(a0 + i), v1 = *(const vec *)(a1 + i), v2 = *(const vec *)(a2 + i),
          v3 = *(const vec *)(a3 + i), xs = *(const vec *)(x + i);
      *(vec *)(p + i) += (v0 * x0 + v1 * x1) + (v2 * x2 + v3 * x3);
      s0 += v0 * xs, s1 += v1 * xs, s2 += v2 * xs, s3 += v3 * xs;
    }
    double t0 = a0[j] * x0 + a0[j + 1] * x1 + a0[j + 2] * x2 + a0[j + 3] * x3,
           t1 = a0[j + 1] * x0 + a1[j + 1] * x1 + a1[j + 2] * x2 + a1[j + 3] * x3,
           t2 = a0[j + 2] * x0 + a1[j + 2] * x1 + a2[j + 2] * x2 + a2[j + 3] * x3,
           t3 = a0[j + 3] * x0 + a1[j + 3] * x1 + a2[j + 3] * x2 + a3[j + 3] * x3;
    UNROLLED for (int w = 0; w < W; ++w) t0 += s0[w], t1 += s1[w], t2 += s2[w], t3 += s3[w];
    for (; i < n; ++i) {
      p[i] += (a0[i] * x0 + a1[i] * x1) + (a2[i] * x2 + a3[i] * x3);
      t0 += a0[i] * x[i], t1 += a1[i] * x[i], t2 += a2[i] * x[i], t3 += a3[i] * x[i];
    }
    p[j] += t0, p[j + 1] += t1, p[j + 2] += t2, p[j + 3] += t3;
  }
  for (; j < n; ++j) {
    const double *a = A + j * leading;
    p[j] += a[j] * x[j];
    for (int64_t i = j + 1; i < n; ++i) p[i] += a[i] * x[j], p[j] += a[i] * x[i];
  }
}

/* (left, right) := (c left - s right, s left + c right) */
INLINE void rotate_vectors(vec *left, vec *right, double c, double s) {
  vec kept = *left;
  *left = c * kept - s * *right;
  *right = s * kept + c * *right;
}

/* Two steps, one behind the other, over columns first to last of packed rows: the second one follows the first at a distance
 * of a column, so that a number is read and written once for both. */
static void rotate_twice(int64_t first, int64_t last, const double *c0, const double *s0, const double *c1,
                         const double *s1, double *rows) {
  enum { BY = ROTATED * W };
  vec u[ROTATED], v[ROTATED];
  double *column = rows + first * BY;
  UNROLLED for (int h = 0; h < ROTATED; ++h) {
    u[h] = *(vec *)(column + h * W);
    v[h] = *(vec *)(column + BY + h * W);
    rotate_vectors(&u[h], &v[h], c0[first], s0[first]);
  }
  for (int64_t k = first; k + 1 < last; ++k, column += BY) {
    double c = c0[k + 1], s = s0[k + 1], next_c = c1[k], next_s = s1[k];
    UNROLLED for (int h = 0; h < ROTATED; ++h) {
      vec w = *(vec *)(column + 2 * BY + h * W);
      rotate_vectors(&v[h], &w, c, s);
      rotate_vectors(&u[h], &v[h], next_c, next_s);
      *(vec *)(column + h * W) = u[h];
      u[h] = v[h];
      v[h] = w;
    }
  }
  UNROLLED for (int h = 0; h < ROTATED; ++h) {
    rotate_vectors(&u[h], &v[h], c1[last - 1], s1[last - 1]);
    *(vec *)(column + h * W) = u[h];
    *(vec *)(column + BY + h * W) = v[h];
  }
}

/* Q := Q times rotations (see dense.h), some rows of all their columns at a time. */
void BLOCKS(rotate_columns)(ulam_context *ctx, int64_t n, dense_rotations *rotations, double *Q) {
  enum { BY = ROTATED * W };
  int64_t first = n, last = 0, steps = rotations->steps;
  if (steps % 2) dense_add_step(rotations, n); /* one that rotates nothing */
  for (int64_t t = 0; t < steps; ++t) {
    first = least(first, rotations->first[t]);
    last = rotations->last[t] > last ? rotations->last[t] : last;
  }
  if (first >= last) return;
  char *mark = ctx->arena_cursor;
  double *rows = ulam_doubles(ctx, n * BY);
  for (int64_t i = 0; i < n; i += BY) {
    int64_t present = least(BY, n - i);
    for (int64_t j = first; j <= last; ++j) {
      const double *from = Q + i + j * n;
      double *to = rows + j * BY;
      if (present == BY) {
        UNROLLED for (int h = 0; h < ROTATED; ++h) *(vec *)(to + h * W) = *(const vec *)(from + h * W);
      } else {
        for (int64_t r = 0; r < BY; ++r) to[r] = r < present ? from[r] : 0;
      }
    }
    for (int64_t t = 0; t < steps; t += 2) {
      const double *c = rotations->c + t * n, *s = rotations->s + t * n;
      int64_t begin = least(rotations->first[t], rotations->first[t + 1]),
              end = rotations->last[t] > rotations->last[t + 1] ? rotations->last[t] : rotations->last[t + 1];
      if (begin < end) rotate_twice(begin, end, c, s, c + n, s + n, rows);
    }
    for (int64_t j = first; j <= last; ++j) {
      double *to = Q + i + j * n;
      const double *from = rows + j * BY;
      if (present == BY) {
        UNROLLED for (int h = 0; h < ROTATED; ++h) *(vec *)(to + h * W) = *(const vec *)(from + h * W);
      } else {
        for (int64_t r = 0; r < present; ++r) to[r] = from[r];
      }
    }
  }
  ulam_release(ctx, mark);
}
