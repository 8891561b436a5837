// What years of school add comes in ordered steps: sums of the first ones, as monotonic effects have it.
// expect: reduced rows
// data: N = 8000; K = 6; school = rng.integers(0, 7, N); age = normal(N); wage = normal(N)
// other: vector[N] mu = rep_vector(base, N) + of_age * age; for (n in 1 : N) { if (school[n] > 0) mu[n] += effect * sum(step[1 : school[n]]); } wage ~ normal(mu, noise); noise ~ exponential(1);
data {
  int<lower=0> N;
  int<lower=1> K;
  array[N] int<lower=0, upper=K> school;
  vector[N] age, wage;
}
parameters {
  real base, of_age, effect;
  simplex[K] step;
  real<lower=0> noise;
}
model {
  vector[K + 1] so_far = append_row(0, cumulative_sum(step));
  noise ~ exponential(1);
  for (n in 1 : N) {
    wage[n] ~ normal(base + of_age * age[n] + effect * so_far[school[n] + 1], noise);
  }
}
