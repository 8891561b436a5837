// Predictors of three outcomes in the columns of a matrix.
// expect: reduced rows
// data: N = 6000; S = 25; site = index(N, S); depth = rng.integers(0, 4, N) * 1.0; mass = normal(N); eggs = counts(N, 2); alive = bits(N)
// bind: S = 25
// other: of_site ~ std_normal(); a ~ std_normal(); b ~ std_normal(); noise ~ exponential(1); mass ~ normal(a[1] + b[1] * depth + of_site[site], noise); eggs ~ poisson_log(a[2] + b[2] * depth + of_site[site]); alive ~ bernoulli_logit(a[3] + b[3] * depth + of_site[site]);
data {
  int<lower=0> N, S;
  array[N] int<lower=1, upper=S> site;
  vector[N] depth, mass;
  array[N] int<lower=0> eggs;
  array[N] int<lower=0, upper=1> alive;
}
parameters {
  vector[3] a, b;
  vector[S] of_site;
  real<lower=0> noise;
}
model {
  matrix[N, 3] eta;
  for (k in 1 : 3) {
    eta[ , k] = a[k] + b[k] * depth + of_site[site];
  }
  of_site ~ std_normal();
  a ~ std_normal();
  b ~ std_normal();
  noise ~ exponential(1);
  mass ~ normal(eta[ , 1], noise);
  eggs ~ poisson_log(eta[ , 2]);
  alive ~ bernoulli_logit(eta[ , 3]);
}
