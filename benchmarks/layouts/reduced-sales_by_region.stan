// A vector of slopes for each region.
// expect: reduced rows
// data: N = 8000; J = 40; K = 3; region = index(N, J); X = normal(N, K); sales = normal(N)
// other: to_vector(z) ~ std_normal(); mu ~ normal(0, 1); tau ~ exponential(1); s ~ exponential(1); for (n in 1:N) sales[n] ~ normal(X[n] * B[region[n]]', s);
data {
  int N; int J; int K;
  array[N] int<lower=1, upper=J> region;
  matrix[N, K] X;
  vector[N] sales;
}
parameters {
  matrix[J, K] z;
  row_vector[K] mu;
  vector<lower=0>[K] tau;
  real<lower=0> s;
}
transformed parameters {
  matrix[J, K] B = rep_matrix(mu, J) + diag_post_multiply(z, tau);
}
model {
  to_vector(z) ~ std_normal();
  mu ~ normal(0, 1);
  tau ~ exponential(1);
  s ~ exponential(1);
  sales ~ normal(rows_dot_product(B[region], X), s);
}
