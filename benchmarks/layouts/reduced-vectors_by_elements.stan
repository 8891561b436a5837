// Vectors of outcomes, whose means a nest fills element by element.
// expect: reduced rows
// data: N = 3000; K = 3; V = 10; vat = index(N, V); heat = normal(N); made = normal(N, K)
// other: of_vat ~ std_normal(); level ~ std_normal(); slope ~ std_normal(); spread ~ exponential(1); for (n in 1 : N) made[n] ~ multi_normal_cholesky(level + slope * heat[n] + of_vat[vat[n]] * loading, diag_pre_multiply(spread, corr)); loading ~ std_normal();
data {
  int<lower=0> N, K, V;
  array[N] int<lower=1, upper=V> vat;
  vector[N] heat;
  array[N] vector[K] made;
}
parameters {
  vector[K] level, slope, loading;
  vector[V] of_vat;
  vector<lower=0>[K] spread;
  cholesky_factor_corr[K] corr;
}
model {
  array[N] vector[K] mean_of;
  for (n in 1 : N) {
    for (k in 1 : K) {
      mean_of[n, k] = level[k] + slope[k] * heat[n] + loading[k] * of_vat[vat[n]];
    }
  }
  of_vat ~ std_normal();
  level ~ std_normal();
  slope ~ std_normal();
  loading ~ std_normal();
  spread ~ exponential(1);
  made ~ multi_normal_cholesky(mean_of, diag_pre_multiply(spread, corr));
}
