// Log rates of regions are filled by slices; the covariate has few values.
// expect: unique rows
// data: N = 20000; J = 100; region = np.sort(index(N, J)); last = np.cumsum(np.bincount(region - 1, minlength=J)); first = np.concatenate([[1], last[:-1] + 1]); age = rng.integers(0, 6, N) / 5; visits = counts(N, 1)
// bind: J = max(1, N // 200)
// other: visits ~ poisson_log(base[region] + slope[region] .* age); base ~ normal(0, 1); slope ~ normal(mean_slope, 0.5); mean_slope ~ std_normal();
data {
  int<lower=0> N, J;
  array[N] int<lower=1, upper=J> region;
  array[J] int first, last;
  vector[N] age;
  array[N] int<lower=0> visits;
}
parameters {
  real mean_slope;
  vector[J] base, slope;
}
model {
  base ~ normal(0, 1);
  slope ~ normal(mean_slope, 0.5);
  mean_slope ~ std_normal();
  vector[N] eta;
  for (j in 1 : J) eta[first[j] : last[j]] = base[j] + slope[j] * age[first[j] : last[j]];
  visits ~ poisson_log(eta);
}
