// Log odds of each season are a copy that each row changes: for those who were told, and by distance.
// expect: unique rows
// data: N = 1500; T = 8; chosen = rng.integers(0, 2, (N, T)); told = rng.integers(0, 2, (N, T)); far = rng.integers(0, 4, N)
// other: for (n in 1 : N) { vector[T] eta = season; for (t in 1 : T) { if (told[n, t] == 1) eta[t] += of_telling; } eta += of_distance * far[n]; chosen[n] ~ bernoulli_logit(eta); } season ~ normal(0, 1);
data {
  int<lower=0> N;
  int<lower=1> T;
  array[N, T] int<lower=0, upper=1> chosen, told;
  array[N] int far;
}
parameters {
  vector[T] season;
  real of_telling, of_distance;
}
model {
  season ~ normal(0, 1);
  for (n in 1 : N) {
    for (t in 1 : T) {
      real eta = season[t] + of_distance * far[n];
      if (told[n, t] == 1) eta += of_telling;
      chosen[n, t] ~ bernoulli_logit(eta);
    }
  }
}
