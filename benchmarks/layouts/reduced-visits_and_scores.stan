// Two outcomes that share a predictor: a normal one, and counts, which have the rows that are left.
// expect: reduced rows
// data: N = 8000; C = 20; clinic = index(N, C); stage = rng.integers(0, 5, N) * 0.5; score = normal(N); visits = counts(N, 2)
// bind: C = 20
// other: of_clinic ~ std_normal(); level ~ normal(0, 5); slope ~ std_normal(); noise ~ exponential(1); score ~ normal(level + slope * stage + of_clinic[clinic], noise); for (n in 1 : N) visits[n] ~ poisson_log(level + slope * stage[n] + of_clinic[clinic[n]]);
data {
  int<lower=0> N, C;
  array[N] int<lower=1, upper=C> clinic;
  vector[N] stage, score;
  array[N] int<lower=0> visits;
}
parameters {
  real level, slope;
  vector[C] of_clinic;
  real<lower=0> noise;
}
transformed parameters {
  vector[N] state = level + of_clinic[clinic];
  for (n in 1 : N) {
    state[n] += slope * stage[n];
  }
}
model {
  of_clinic ~ std_normal();
  level ~ normal(0, 5);
  slope ~ std_normal();
  noise ~ exponential(1);
  score ~ normal(state, noise);
  visits ~ poisson_log(state);
}
