/* Gaussian dynamic linear models. Stan Functions Reference, "Gaussian dynamic linear models". y has a column for each
 * time; the state moves by G with noise W and is observed through F' with noise V; m0 and C0 are its mean and covariance
 * before the first observation. */

int is_differentiated_again();

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

/* The Kalman filter of runtime/c/dynamic_linear_model.c, on the factors of the covariances. */
real gaussian_dlm_log_kernel(matrix y, matrix F, matrix G, vector V, matrix W, vector m0, matrix C0) {
  if (is_differentiated_again()) return gaussian_dlm_steps(y, F, G, V, ldl_decompose(W), m0, ldl_decompose(C0));
  return gaussian_dlm_filter(y, F, G, V, ldl_decompose(W), m0, ldl_decompose(C0));
}

/* The same filter, for derivatives of any order: its steps are those of the C functions `move` and `observe`. */
real gaussian_dlm_steps(matrix y, matrix F, matrix G, vector V, matrix W, vector m0, matrix C0) {
  int n = rows(G);
  vector[n] mean = m0;
  matrix[n, n] C = C0;
  real total = 0;
  for (t in 1:cols(y)) {
    matrix[2 * n, n] R;
    vector[2 * n] weights = append_row(diagonal(C), diagonal(W));
    mean = G * mean;
    for (i in 1:n) {
      for (k in 1:n) {
        R[k, i] = G[i, k];
        for (l in (k + 1):n) R[k, i] += G[i, l] * C[l, k];
        R[n + k, i] = k < i ? W[i, k] : k == i;
      }
    }
    for (j in 1:n) {
      C[j, j] = dot_product(weights, square(R[ , j]));
      for (i in (j + 1):n) {
        C[i, j] = C[j, j] == 0 ? 0 : dot_product(weights .* R[ , j], R[ , i]) / C[j, j];
        R[ , i] -= C[i, j] * R[ , j];
      }
    }
    for (i in 1:rows(y)) {
      vector[n] gain;
      real error = y[i, t] - dot_product(F[ , i], mean);
      real variance = V[i];
      for (m in 1:n) {
        int j = n + 1 - m;
        real f = F[j, i];
        for (k in (j + 1):n) f += C[k, j] * F[k, i];
        real share = C[j, j] * f;
        real slope = variance == 0 ? 0 : f / variance;
        real after = variance + f * share;
        if (after != 0) C[j, j] *= variance / after;
        gain[j] = share;
        for (k in (j + 1):n) {
          real factor = C[k, j];
          C[k, j] = factor - gain[k] * slope;
          gain[k] += factor * share;
        }
        variance = after;
      }
      mean += gain * (error / variance);
      total -= 0.5 * (log(variance) + square(error) / variance);
    }
  }
  return total;
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
