/* Gaussian dynamic linear models. Stan Functions Reference, "Gaussian dynamic linear models". y has a column for each
 * time; the state moves by G with noise W and is observed through F' with noise V; m0 and C0 are its mean and covariance
 * before the first observation. */

/* V, W and C0 may be singular. */
real gaussian_dlm_obs_lpdf(matrix y, matrix F, matrix G, matrix V, matrix W, vector m0, matrix C0) {
  require_finite(y);
  require_finite(F);
  require_finite(G);
  require_pos_semidefinite(V);
  require_pos_semidefinite(W);
  require_finite(m0);
  require_pos_semidefinite(C0);
  return gaussian_dlm_log_kernel(y, F, G, V, W, m0, C0) - num_elements(y) * log_sqrt_two_pi();
}

/* V: the variances of independent errors. */
real gaussian_dlm_obs_lpdf(matrix y, matrix F, matrix G, vector V, matrix W, vector m0, matrix C0) {
  require_finite(y);
  require_finite(F);
  require_finite(G);
  require_nonnegative(V);
  require_finite(V);
  require_pos_semidefinite(W);
  require_finite(m0);
  require_pos_semidefinite(C0);
  return gaussian_dlm_log_kernel(y, F, G, V, W, m0, C0) - num_elements(y) * log_sqrt_two_pi();
}

/* With V = L diag(D) L', the errors of L^-1 y are independent. */
real gaussian_dlm_log_kernel(matrix y, matrix F, matrix G, matrix V, matrix W, vector m0, matrix C0) {
  matrix[rows(V), rows(V)] L = ldl_decompose(V);
  vector[rows(V)] D = diagonal(L);
  for (i in 1:rows(V)) L[i, i] = 1;
  return gaussian_dlm_log_kernel(mdivide_left_tri_low(L, y), mdivide_left_tri_low(L, F')', G, D, W, m0, C0);
}

/* The Kalman filter, one observation at a time, on the factors L and D of the state's covariance L diag(D) L': variances
 * that differ by many orders are never added up, and nothing is subtracted (Bierman, "Factorization Methods for Discrete
 * Sequential Estimation", 1977, chapters V and VI). */
real gaussian_dlm_log_kernel(matrix y, matrix F, matrix G, vector V, matrix W, vector m0, matrix C0) {
  int n = rows(G);
  vector[n] m = m0;
  matrix[n, n] C = ldl_decompose(C0);
  matrix[n, n] noise = ldl_decompose(W);
  real total = 0;
  for (t in 1:cols(y)) {
    m = G * m;
    C = ldl_of_sum(G, C, noise);
    for (i in 1:rows(y)) {
      real error = y[i, t] - dot_product(F[, i], m);
      real variance = V[i];
      vector[n] covariance;
      for (reversed in 1:n) {
        int j = n + 1 - reversed;
        real f = F[j, i];
        for (k in (j + 1):n) f += C[k, j] * F[k, i];
        real before = variance;
        real share = C[j, j] * f;
        real slope = before == 0 ? 0 : f / before;
        variance += f * share;
        C[j, j] *= variance == 0 ? 1 : before / variance;
        covariance[j] = share;
        for (k in (j + 1):n) {
          real factor = C[k, j];
          C[k, j] = factor - covariance[k] * slope;
          covariance[k] += factor * share;
        }
      }
      m += covariance * (error / variance);
      total -= 0.5 * (log(variance) + square(error) / variance);
    }
  }
  return total;
}

/* The factors of G C G' + W, from those of C and W, by weighted orthogonalisation of [G L_C, L_W]. */
matrix ldl_of_sum(matrix G, matrix C, matrix W) {
  int n = rows(G);
  matrix[2 * n, n] rows_of_factor;
  vector[2 * n] weights = append_row(diagonal(C), diagonal(W));
  for (i in 1:n) {
    for (k in 1:n) {
      real entry = G[i, k];
      for (l in (k + 1):n) entry += G[i, l] * C[l, k];
      rows_of_factor[k, i] = entry;
      rows_of_factor[n + k, i] = k < i ? W[i, k] : k == i;
    }
  }
  matrix[n, n] result = rep_matrix(0, n, n);
  for (j in 1:n) {
    vector[2 * n] weighted = weights .* rows_of_factor[, j];
    real size = dot_product(weighted, rows_of_factor[, j]);
    result[j, j] = size;
    for (i in (j + 1):n) {
      real factor = size == 0 ? 0 : dot_product(weighted, rows_of_factor[, i]) / size;
      rows_of_factor[, i] -= factor * rows_of_factor[, j];
      result[i, j] = factor;
    }
  }
  return result;
}

/* L below the diagonal and D on it, of a positive semidefinite matrix L diag(D) L'; its lower triangle is read. */
matrix ldl_decompose(matrix x) {
  int n = rows(x);
  matrix[n, n] rest = x;
  matrix[n, n] result = rep_matrix(0, n, n);
  for (j in 1:n) {
    result[j, j] = fmax(rest[j, j], 0);
    for (i in (j + 1):n) {
      result[i, j] = rest[j, j] > 0 ? rest[i, j] / rest[j, j] : 0;
      for (k in (j + 1):i) rest[i, k] -= result[i, j] * rest[k, j];
    }
  }
  return result;
}
