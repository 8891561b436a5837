// Several scores of each person, with means that a product of matrices gives ahead of the loop.
// expect: reduced rows
// data: N = 3000; K = 3; D = 4; X = normal(N, K); score = X @ normal(K, D) + normal(N, D)
// other: array[N] vector[D] mu; for (n in 1:N) mu[n] = a' + B' * X[n]'; to_vector(B) ~ normal(0, 2); a ~ normal(0, 5); L ~ lkj_corr_cholesky(2); s ~ exponential(1); score ~ multi_normal_cholesky(mu, diag_pre_multiply(s, L));
data {
  int N; int K; int D;
  matrix[N, K] X;
  array[N] vector[D] score;
}
parameters {
  matrix[K, D] B;
  row_vector[D] a;
  cholesky_factor_corr[D] L;
  vector<lower=0>[D] s;
}
model {
  matrix[N, D] mu = rep_matrix(a, N) + X * B;
  to_vector(B) ~ normal(0, 2);
  a ~ normal(0, 5);
  L ~ lkj_corr_cholesky(2);
  s ~ exponential(1);
  for (n in 1:N)
    score[n] ~ multi_normal_cholesky(mu[n]', diag_pre_multiply(s, L));
}
