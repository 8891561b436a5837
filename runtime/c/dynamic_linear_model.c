/* The Kalman filter of gaussian_dlm_obs, one observation at a time, on the factors L and D of the state's covariance
 * L diag(D) L': variances that differ by many orders are never added up, and nothing is subtracted (Bierman,
 * "Factorization Methods for Discrete Sequential Estimation", 1977, chapters V and VI). A factored covariance is a matrix
 * with D on its diagonal and L below; what is above is not read.
 *
 * The pullback goes from the last time to the first. States before the observations of a time are kept; what happens
 * within a time is done once more, its steps written down. */
#include "dense.h"

/* An element of a matrix of n rows. */
#define E(matrix, i, j) matrix[(i) + (j) * n]

/* What an update by one observation read and made, all from before it. */
typedef struct {
  number *C;          /* n x n, the factors */
  number *mean;       /* n */
  number *covariance; /* n x n: column j has the covariances of the states after j with the error, before step j */
  number *f;          /* n */
  number *variance;   /* n + 1: before step j, the steps going from n - 1 to 0; after the last one at n */
  number *gain;       /* n: all covariances */
} Update;

typedef struct {
  int64_t n, r;
  Update *updates;     /* one for each observation of a time */
  number *rows;        /* n + 1 times 2 n x n: the columns before each step of the orthogonalisation */
  number *weights;     /* 2 n */
  number *adj_rows;    /* 2 n x n */
  number *adj_weights; /* 2 n */
  number *adj_gain;    /* n */
} Workspace;

static Workspace workspace(ulam_context *ctx, int64_t n, int64_t r, int records) {
  Workspace w = {.n = n, .r = r};
  int64_t updates = records ? r : 1;
  w.updates = ulam_alloc(ctx, (updates ? updates : 1) * (int64_t)sizeof *w.updates);
  for (int64_t i = 0; i < updates; ++i)
    w.updates[i] = (Update){dense_numbers(ctx, n * n), dense_numbers(ctx, n),     dense_zeros(ctx, n * n),
                            dense_numbers(ctx, n),     dense_numbers(ctx, n + 1), dense_numbers(ctx, n)};
  w.rows = dense_numbers(ctx, (records ? n + 1 : 1) * 2 * n * n);
  w.weights = dense_numbers(ctx, 2 * n);
  w.adj_rows = dense_numbers(ctx, 2 * n * n);
  w.adj_weights = dense_numbers(ctx, 2 * n);
  w.adj_gain = dense_numbers(ctx, n);
  return w;
}

/* One observation y with the variance `noise`, through F: the mean and the factors are updated. Returns its part of the
 * log density. */
static number observe(int64_t n, number y, const number *F, number noise, number *mean, number *C, Update *u,
                      int records) {
  number error = y, variance = noise;
  if (records) {
    dense_copy(u->C, C, n * n);
    dense_copy(u->mean, mean, n);
  }
  for (int64_t k = 0; k < n; ++k) error -= F[k] * mean[k];
  for (int64_t j = n - 1; j >= 0; --j) {
    number *column = C + j * n, f = F[j];
    for (int64_t k = j + 1; k < n; ++k) f += column[k] * F[k];
    number before = variance, share = column[j] * f, slope = value_of(before) == 0 ? 0 : f / before;
    u->f[j] = f;
    u->variance[j] = before;
    variance += f * share;
    if (value_of(variance) != 0) column[j] *= before / variance;
    number *gain = u->gain;
    gain[j] = share;
    if (records)
      for (int64_t k = j + 1; k < n; ++k) E(u->covariance, k, j) = gain[k];
    for (int64_t k = j + 1; k < n; ++k) {
      number factor = column[k];
      column[k] = factor - gain[k] * slope;
      gain[k] += factor * share;
    }
  }
  u->variance[n] = variance;
  number scaled = error / variance;
  for (int64_t k = 0; k < n; ++k) mean[k] += u->gain[k] * scaled;
  return -0.5 * (log(variance) + error * scaled);
}

/* The state moves: mean and factors become those of G mean and G C G' + W, by weighted orthogonalisation of the rows of
 * [G L_C, L_W]. `records`: the columns of each step are kept. */
static void move(Workspace *w, const number *G, const number *W, const number *mean, const number *C, number *moved_mean,
                 number *moved, int records) {
  int64_t n = w->n, m = 2 * n;
  number *R = w->rows;
  for (int64_t i = 0; i < n; ++i) moved_mean[i] = 0;
  for (int64_t k = 0; k < n; ++k)
    for (int64_t i = 0; i < n; ++i) moved_mean[i] += E(G, i, k) * mean[k];
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < n; ++k) {
      number entry = E(G, i, k);
      for (int64_t l = k + 1; l < n; ++l) entry += E(G, i, l) * E(C, l, k);
      R[k + i * m] = entry;
      R[n + k + i * m] = k < i ? E(W, i, k) : (k == i);
    }
    w->weights[i] = E(C, i, i);
    w->weights[n + i] = E(W, i, i);
  }
  for (int64_t j = 0; j < n; ++j) {
    if (records) {
      dense_copy(R + m * n, R, m * n);
      R += m * n;
    }
    const number *column = R + j * m, *weights = w->weights;
    number size = 0;
    for (int64_t k = 0; k < m; ++k) size += weights[k] * column[k] * column[k];
    E(moved, j, j) = size;
    for (int64_t i = j + 1; i < n; ++i) {
      number *other = R + i * m, product = 0;
      E(moved, j, i) = 0;
      for (int64_t k = 0; k < m; ++k) product += weights[k] * column[k] * other[k];
      number factor = value_of(size) == 0 ? 0 : product / size;
      for (int64_t k = 0; k < m; ++k) other[k] -= factor * column[k];
      E(moved, i, j) = factor;
    }
  }
}

ULAM_API void KERNEL(gaussian_dlm_filter)(ulam_context *ctx, const number *y, const number *F, const number *G,
                                          const number *V, const number *W, const number *m0, const number *C0,
                                          int64_t r, int64_t T, int64_t n, number *total, number *means,
                                          number *factors) {
  char *mark = ctx->arena_cursor;
  Workspace w = workspace(ctx, n, r, 0);
  number *mean = dense_copied(ctx, m0, n), *C = dense_copied(ctx, C0, n * n), sum = 0;
  for (int64_t t = 0; t < T; ++t) {
    number *moved_mean = means + t * n, *moved = factors + t * n * n;
    move(&w, G, W, mean, C, moved_mean, moved, 0);
    dense_copy(mean, moved_mean, n);
    dense_copy(C, moved, n * n);
    for (int64_t i = 0; i < r; ++i) sum += observe(n, y[i + t * r], F + i * n, V[i], mean, C, w.updates, 0);
  }
  *total = sum;
  ulam_release(ctx, mark);
}

/* Adjoints of mean and factors: those after the update become those before. */
static void observe_pullback(int64_t n, number y, const number *F, const Update *u, number adj_total, number *adj_gain,
                             number *adj_mean, number *adj_C, number *adj_y, number *adj_F, number *adj_noise) {
  number error = y, variance = u->variance[n];
  for (int64_t k = 0; k < n; ++k) error -= F[k] * u->mean[k];
  number scaled = error / variance, adj_scaled = -0.5 * adj_total * error, adj_error = -0.5 * adj_total * scaled;
  for (int64_t k = 0; k < n; ++k) {
    adj_gain[k] = adj_mean[k] * scaled;
    adj_scaled += adj_mean[k] * u->gain[k];
  }
  adj_error += adj_scaled / variance;
  number adj_variance = -0.5 * adj_total / variance - adj_scaled * scaled / variance;
  *adj_y += adj_error;
  for (int64_t k = 0; k < n; ++k) {
    adj_F[k] -= adj_error * u->mean[k];
    adj_mean[k] -= adj_error * F[k];
  }
  for (int64_t j = 0; j < n; ++j) {
    const number *column = u->C + j * n, *gain = u->covariance + j * n;
    number *adj_column = adj_C + j * n, f = u->f[j], before = u->variance[j];
    number after = j ? u->variance[j - 1] : variance, share = column[j] * f;
    int is_noisy = value_of(before) != 0;
    number slope = is_noisy ? f / before : 0, adj_slope = 0, adj_share = adj_gain[j];
    for (int64_t k = j + 1; k < n; ++k) {
      number adj_new = adj_column[k];
      adj_column[k] += adj_gain[k] * share;
      adj_share += adj_gain[k] * column[k];
      adj_slope -= adj_new * gain[k];
      adj_gain[k] -= adj_new * slope;
    }
    number adj_before = 0, adj_f = 0;
    if (value_of(after) != 0) {
      number adj_new = adj_column[j], quotient = before / after;
      adj_column[j] = adj_new * quotient;
      adj_before += adj_new * column[j] / after;
      adj_variance -= adj_new * column[j] * quotient / after;
    }
    adj_before += adj_variance;
    adj_f += adj_variance * share;
    adj_share += adj_variance * f;
    if (is_noisy) {
      adj_f += adj_slope / before;
      adj_before -= adj_slope * slope / before;
    }
    adj_column[j] += adj_share * f;
    adj_f += adj_share * column[j];
    adj_F[j] += adj_f;
    for (int64_t k = j + 1; k < n; ++k) {
      adj_column[k] += adj_f * F[k];
      adj_F[k] += adj_f * column[k];
    }
    adj_variance = adj_before;
  }
  *adj_noise += adj_variance;
}

/* Adjoints after the move become those before; the move has just been recorded. */
static void move_pullback(Workspace *w, const number *G, const number *mean, const number *C, const number *moved,
                          number *adj_mean, number *adj_C, number *adj_G, number *adj_W) {
  int64_t n = w->n, m = 2 * n;
  number *A = w->adj_rows, *adj_weights = w->adj_weights;
  const number *weights = w->weights;
  dense_zero(A, m * n);
  dense_zero(adj_weights, m);
  for (int64_t j = n - 1; j >= 0; --j) {
    const number *R = w->rows + j * m * n, *column = R + j * m; /* before step j */
    number size = E(moved, j, j), adj_size = adj_C[j + j * n], *adj_column = A + j * m;
    int is_sized = value_of(size) != 0;
    for (int64_t i = j + 1; i < n; ++i) {
      const number *other = R + i * m;
      number *adj_other = A + i * m, factor = E(moved, i, j), adj_factor = adj_C[i + j * n];
      for (int64_t k = 0; k < m; ++k) {
        adj_factor -= adj_other[k] * column[k];
        adj_column[k] -= adj_other[k] * factor;
      }
      if (!is_sized) continue;
      number adj_product = adj_factor / size;
      adj_size -= adj_product * factor;
      for (int64_t k = 0; k < m; ++k) {
        adj_other[k] += adj_product * weights[k] * column[k];
        adj_column[k] += adj_product * weights[k] * other[k];
        adj_weights[k] += adj_product * column[k] * other[k];
      }
    }
    for (int64_t k = 0; k < m; ++k) {
      adj_column[k] += 2 * adj_size * weights[k] * column[k];
      adj_weights[k] += adj_size * column[k] * column[k];
    }
  }
  dense_zero(adj_C, n * n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < n; ++k) {
      number adj = A[k + i * m];
      E(adj_G, i, k) += adj;
      for (int64_t l = k + 1; l < n; ++l) {
        E(adj_G, i, l) += adj * E(C, l, k);
        E(adj_C, l, k) += adj * E(G, i, l);
      }
      if (k < i) E(adj_W, i, k) += A[n + k + i * m];
    }
    E(adj_C, i, i) += adj_weights[i];
    E(adj_W, i, i) += adj_weights[n + i];
  }
  number *adj_before = w->adj_gain;
  for (int64_t k = 0; k < n; ++k) {
    adj_before[k] = 0;
    for (int64_t i = 0; i < n; ++i) {
      adj_before[k] += E(G, i, k) * adj_mean[i];
      E(adj_G, i, k) += adj_mean[i] * mean[k];
    }
  }
  dense_copy(adj_mean, adj_before, n);
}

static number *wanted(ulam_context *ctx, number *adjoint, int64_t size) {
  return adjoint ? adjoint : dense_zeros(ctx, size);
}

ULAM_API void KERNEL(gaussian_dlm_filter_pullback)(
    ulam_context *ctx, const number *y, const number *F, const number *G, const number *V, const number *W,
    const number *m0, const number *C0, int64_t r, int64_t T, int64_t n, const number *total, const number *means,
    const number *factors, number *adj_y, number *adj_F, number *adj_G, number *adj_V, number *adj_W, number *adj_m0,
    number *adj_C0, const number *adj_total, const number *adj_means, const number *adj_factors) {
  (void)total, (void)adj_means, (void)adj_factors;
  if (adj_total == NULL || T == 0) return;
  char *mark = ctx->arena_cursor;
  adj_y = wanted(ctx, adj_y, r * T), adj_F = wanted(ctx, adj_F, n * r), adj_G = wanted(ctx, adj_G, n * n);
  adj_V = wanted(ctx, adj_V, r), adj_W = wanted(ctx, adj_W, n * n), adj_m0 = wanted(ctx, adj_m0, n);
  adj_C0 = wanted(ctx, adj_C0, n * n);
  Workspace w = workspace(ctx, n, r, 1);
  number *adj_mean = dense_zeros(ctx, n), *adj_C = dense_zeros(ctx, n * n);
  number *mean = dense_numbers(ctx, n), *C = dense_numbers(ctx, n * n);
  number *moved_mean = dense_numbers(ctx, n), *moved = dense_numbers(ctx, n * n);
  for (int64_t t = T - 1; t >= -1; --t) {
    /* mean and C: the state after the observations of t, or at the start */
    dense_copy(mean, t < 0 ? m0 : means + t * n, n);
    dense_copy(C, t < 0 ? C0 : factors + t * n * n, n * n);
    for (int64_t i = 0; i < r && t >= 0; ++i)
      observe(n, y[i + t * r], F + i * n, V[i], mean, C, w.updates + i, 1);
    if (t < T - 1) {
      move(&w, G, W, mean, C, moved_mean, moved, 1);
      move_pullback(&w, G, mean, C, moved, adj_mean, adj_C, adj_G, adj_W);
    }
    for (int64_t i = r - 1; i >= 0 && t >= 0; --i)
      observe_pullback(n, y[i + t * r], F + i * n, w.updates + i, *adj_total, w.adj_gain, adj_mean, adj_C,
                       adj_y + i + t * r, adj_F + i * n, adj_V + i);
  }
  for (int64_t i = 0; i < n; ++i) adj_m0[i] += adj_mean[i];
  for (int64_t i = 0; i < n * n; ++i) adj_C0[i] += adj_C[i];
  ulam_release(ctx, mark);
}
