/* Gaussian dynamic linear models. Stan Functions Reference, "Gaussian dynamic linear models". y has a column for each
 * time; the state moves by G with noise W and is observed through F' with noise V; m0 and C0 are its mean and covariance
 * before the first observation. */

/* The Kalman filter. */
real gaussian_dlm_obs_lpdf(matrix y, matrix F, matrix G, matrix V, matrix W, vector m0, matrix C0) {
  require_finite(y);
  require_finite(F);
  require_finite(G);
  require_finite(m0);
  require_symmetric(V);
  require_symmetric(W);
  require_symmetric(C0);
  return gaussian_dlm_log_kernel(y, F, G, V, W, m0, C0) - num_elements(y) * log_sqrt_two_pi();
}

real gaussian_dlm_obs_lpdf(matrix y, matrix F, matrix G, vector V, matrix W, vector m0, matrix C0) {
  require_nonnegative(V);
  return gaussian_dlm_obs_lupdf(y | F, G, diag_matrix(V), W, m0, C0);
}

real gaussian_dlm_log_kernel(matrix y, matrix F, matrix G, matrix V, matrix W, vector m0, matrix C0) {
  vector[rows(G)] m = m0;
  matrix[rows(G), rows(G)] C = C0;
  real total = 0;
  for (t in 1:cols(y)) {
    vector[rows(G)] a = G * m;
    matrix[rows(G), rows(G)] R = G * C * G' + W;
    matrix[rows(y), rows(y)] Q = F' * R * F + V;
    matrix[rows(y), rows(y)] Q_inverse = inverse_spd(Q);
    matrix[rows(G), rows(y)] gain = R * F * Q_inverse;
    vector[rows(y)] error = y[, t] - F' * a;
    m = a + gain * error;
    C = R - gain * Q * gain';
    C = 0.5 * (C + C');
    total -= 0.5 * (log_determinant_spd(Q) + quad_form(Q_inverse, error));
  }
  return total;
}
