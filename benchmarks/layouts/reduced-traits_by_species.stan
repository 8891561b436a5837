// Several traits of each plant, with means and slopes of its species.
// expect: reduced rows
// data: N = 4000; J = 25; D = 3; species = index(N, J); height = normal(N); trait = normal(J, D)[species - 1] + normal(N, D)
// other: to_vector(slope) ~ normal(0, 1); for (j in 1:J) z[j] ~ std_normal(); mu ~ normal(0, 2); tau ~ exponential(1); L ~ lkj_corr_cholesky(2); s ~ exponential(1); for (n in 1:N) trait[n] ~ multi_normal_cholesky(m[species[n]] + slope[, species[n]] * height[n], diag_pre_multiply(s, L));
data {
  int N; int J; int D;
  array[N] int<lower=1, upper=J> species;
  vector[N] height;
  array[N] vector[D] trait;
}
parameters {
  array[J] vector[D] z;
  matrix[D, J] slope;
  vector[D] mu;
  vector<lower=0>[D] tau;
  cholesky_factor_corr[D] L;
  vector<lower=0>[D] s;
}
transformed parameters {
  array[J] vector[D] m;
  for (j in 1:J)
    m[j] = mu + tau .* z[j];
}
model {
  array[N] vector[D] mean_of;
  for (n in 1:N) {
    mean_of[n] = m[species[n]];
    mean_of[n] += height[n] * slope[, species[n]];
  }
  for (j in 1:J)
    z[j] ~ std_normal();
  to_vector(slope) ~ normal(0, 1);
  mu ~ normal(0, 2);
  tau ~ exponential(1);
  L ~ lkj_corr_cholesky(2);
  s ~ exponential(1);
  trait ~ multi_normal_cholesky(mean_of, diag_pre_multiply(s, L));
}
