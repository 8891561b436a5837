// Lags within groups of one or two: hardly a row is left.
// expect: none
// data: N = 4000; G = 4000; of = np.sort(index(N, G)); y = normal(N)
data {
  int<lower=0> N, G;
  array[N] int<lower=1, upper=G> of;
  vector[N] y;
}
parameters {
  vector[G] level;
  real carried;
  real<lower=0> noise;
}
model {
  level ~ normal(0, 1);
  noise ~ exponential(1);
  for (n in 2 : N) {
    if (of[n] == of[n - 1]) {
      y[n] ~ normal(level[of[n]] + carried * y[n - 1], noise);
    }
  }
}
