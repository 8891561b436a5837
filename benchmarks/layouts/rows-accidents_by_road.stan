// Accidents road by road: slices of a design of a few flags, as a GLM of counts.
// expect: unique rows
// data: N = 20000; R = 40; F = 4; first = 1 + N // R * np.arange(R); last = N // R * np.arange(1, R + 1); flags = rng.integers(0, 2, (N, F)) * 1.0; accidents = counts(N, 1); road = np.repeat(np.arange(1, R + 1), N // R)
// bind: R = max(1, N // 500)
// other: of_road ~ normal(0, spread); by_flag ~ normal(0, 1); spread ~ exponential(1); accidents ~ poisson_log(of_road[road] + flags * by_flag);
data {
  int<lower=0> N, R, F;
  array[R] int<lower=1> first, last;
  matrix[N, F] flags;
  array[N] int<lower=0> accidents;
  array[N] int<lower=1, upper=R> road;
}
parameters {
  vector[R] of_road;
  vector[F] by_flag;
  real<lower=0> spread;
}
model {
  of_road ~ normal(0, spread);
  by_flag ~ normal(0, 1);
  spread ~ exponential(1);
  for (r in 1 : R)
    accidents[first[r] : last[r]] ~ poisson_log_glm(flags[first[r] : last[r]], of_road[r], by_flag);
}
