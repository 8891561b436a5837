/* The reduction of a symmetric matrix to a tridiagonal one by blocks of columns, for levels 3 and 4: half of the work, and
 * all of making the product of reflections, are products of matrices (Dongarra, Sorensen and Hammarling, "Block reduction
 * of matrices to condensed forms", 1989; compact WY form: Schreiber and Van Loan, 1989).
 */

enum { PANEL = 32, COLUMNS = 80 /* of fewer columns, products of matrices cost more than they gain */ };

/* T of I - V T V' = H_0 H_1 ... for the reflections H_j = I - v_j v_j' / halves[j], with v_j in the columns of V. */
static void compact_factor(ulam_context *ctx, int64_t m, int64_t width, dense_view V, const double *halves, double *T) {
  double inner[PANEL * PANEL];
  dense_multiply(ctx, width, width, m, dense_transposed(V), V, dense_of(inner, width));
  dense_zero(T, width * width);
  for (int64_t j = 0; j < width; ++j) {
    if (halves[j] == 0) continue; /* no reflection */
    for (int64_t i = 0; i < j; ++i) {
      double sum = 0;
      for (int64_t l = i; l < j; ++l) sum += T[i + l * width] * inner[l + j * width];
      T[i + j * width] = -sum / halves[j];
    }
    T[j + j * width] = 1 / halves[j];
  }
}

/* Q := the product of the reflections, whose vectors are in A's columns below the diagonal, the last block first. */
static void multiply_reflections(ulam_context *ctx, int64_t n, const double *A, const double *halves, double *Q) {
  char *mark = ctx->arena_cursor;
  double *inner = ulam_doubles(ctx, PANEL * n), *scaled = ulam_doubles(ctx, PANEL * n), T[PANEL * PANEL];
  dense_zero(Q, n * n);
  for (int64_t i = 0; i < n; ++i) Q[i + i * n] = 1;
  for (int64_t begin = (n - 2) / PANEL * PANEL; begin >= 0 && n > 1; begin -= PANEL) {
    int64_t m = n - begin - 1, width = m < PANEL ? m : PANEL;
    dense_view V = dense_block(dense_of(A, n), begin + 1, begin), rest = dense_block(dense_of(Q, n), begin + 1, begin + 1);
    compact_factor(ctx, m, width, V, halves + begin, T);
    dense_multiply(ctx, width, m, m, dense_transposed(V), rest, dense_of(inner, width));
    dense_multiply(ctx, width, m, width, dense_of(T, width), dense_of(inner, width), dense_of(scaled, width));
    dense_multiply_add(ctx, m, m, width, -1.0, V, dense_of(scaled, width), rest);
  }
  ulam_release(ctx, mark);
}

/* A := what is left of it when columns begin to begin + width are reduced, their reflections in it, d and e of these; W has
 * room for as many columns: A -= V W' + W V' is what a block of reflections does to the columns behind it. */
static void reduce_columns(ulam_context *ctx, int64_t n, int64_t begin, int64_t width, double *A, double *W, double *d,
                           double *e, double *halves) {
  dense_view V = dense_block(dense_of(A, n), 0, begin), rests = dense_of(W, n);
  double of_v[PANEL], of_w[PANEL];
  for (int64_t j = 0; j < width; ++j) {
    int64_t k = begin + j, below = n - k - 1;
    double *column = A + k * n, *v = column + k + 1, *w = W + k + 1 + j * n;
    dense_multiply_add(ctx, n - k, 1, j, -1.0, dense_block(V, k, 0), dense_transposed(dense_block(rests, k, 0)),
                       dense_of(column + k, n));
    dense_multiply_add(ctx, n - k, 1, j, -1.0, dense_block(rests, k, 0), dense_transposed(dense_block(V, k, 0)),
                       dense_of(column + k, n));
    d[k] = column[k];
    e[k] = reflection(below, v, v, &halves[k]);
    dense_zero(column, k + 1);
    dense_zero(W + j * n, n);
    if (halves[k] == 0) {
      dense_zero(v, below);
      continue;
    }
    dense_multiply_symmetric(below, v + n, n, v, w);
    dense_zero(of_v, j);
    dense_zero(of_w, j);
    dense_view before = dense_block(V, k + 1, 0), rests_before = dense_block(rests, k + 1, 0);
    dense_multiply_add(ctx, j, 1, below, -1.0, dense_transposed(rests_before), dense_of(v, n), dense_of(of_w, PANEL));
    dense_multiply_add(ctx, j, 1, below, -1.0, dense_transposed(before), dense_of(v, n), dense_of(of_v, PANEL));
    dense_multiply_add(ctx, below, 1, j, 1.0, before, dense_of(of_w, PANEL), dense_of(w, n));
    dense_multiply_add(ctx, below, 1, j, 1.0, rests_before, dense_of(of_v, PANEL), dense_of(w, n));
    take_half_along(below, v, halves[k], w);
  }
}

static void tridiagonalize(ulam_context *ctx, int64_t n, double *A, double *Q, double *d, double *e) {
  if (n < COLUMNS) {
    tridiagonalize_by_columns(ctx, n, A, Q, d, e);
    return;
  }
  char *mark = ctx->arena_cursor;
  double *halves = ulam_doubles(ctx, n), *W = ulam_doubles(ctx, n * PANEL);
  for (int64_t begin = 0, width; begin + 1 < n; begin += width) {
    width = n - 1 - begin < PANEL ? n - 1 - begin : PANEL;
    reduce_columns(ctx, n, begin, width, A, W, d, e, halves);
    int64_t end = begin + width;
    dense_view V = dense_block(dense_of(A, n), end, begin), rests = dense_block(dense_of(W, n), end, 0),
               rest = dense_block(dense_of(A, n), end, end);
    dense_multiply_add_lower(ctx, n - end, width, -1.0, V, dense_transposed(rests), rest);
    dense_multiply_add_lower(ctx, n - end, width, -1.0, rests, dense_transposed(V), rest);
  }
  if (n > 0) {
    d[n - 1] = A[n * n - 1];
    e[n - 1] = 0;
  }
  multiply_reflections(ctx, n, A, halves, Q);
  ulam_release(ctx, mark);
}
