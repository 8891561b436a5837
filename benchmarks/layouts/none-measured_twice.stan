// Each value was measured twice, the second time with an error in the last digits: what looks equal is not.
// expect: none
// data: half = 3000; dose = np.repeat(np.round(normal(half), 1), 2) * (1 + 1e-15 * rng.integers(0, 1000, 2 * half)); hits = counts(2 * half, 3)
data {
  int half;
  vector[2 * half] dose;
  array[2 * half] int<lower=0> hits;
}
parameters {
  real a;
  real b;
  real<lower=0> phi;
}
model {
  phi ~ exponential(1);
  for (k in 1 : 2 * half) {
    hits[k] ~ poisson(exp(a) + phi * inv_logit(b * dose[k]));
  }
}
