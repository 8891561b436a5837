// A factor model: traits of plants with one covariance, of which two factors and noise are parts.
// expect: reduced rows
// data: N = 3000; K = 6; trait = normal(N, K) @ normal(K, K) + 5
// other: matrix[K, K] C = cholesky_decompose(add_diag(tcrossprod(loading), noise)); for (i in 1 : N) { vector[K] r = mdivide_left_tri_low(C, trait[i] - mean_of); target += -0.5 * dot_self(r) - sum(log(diagonal(C))); } mean_of ~ normal(0, 10); to_vector(loading) ~ normal(0, 2); noise ~ lognormal(0, 1);
data {
  int N;
  int K;
  array[N] vector[K] trait;
}
parameters {
  vector[K] mean_of;
  matrix[K, 2] loading;
  vector<lower=0>[K] noise;
}
model {
  mean_of ~ normal(0, 10);
  to_vector(loading) ~ normal(0, 2);
  noise ~ lognormal(0, 1);
  trait ~ multi_normal(mean_of, loading * loading' + diag_matrix(noise));
}
