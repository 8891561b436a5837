// Two responses with the same design, which is written by columns, and scales of their own; a count beside them.
// expect: reduced rows
// data: N = 3000; D = 12; Z = normal(N, D); first = normal(N); second = normal(N); spots = counts(N, 4)
// other: first ~ normal(shift + Z * effect, noise[1]); second ~ normal(scale * col(Z, 2) - 3 * shift, noise[2]); effect ~ normal(0, 2); rate ~ normal(0, 3); noise ~ gamma(2, 2); for (n in 1 : N) spots[n] ~ poisson_log(rate);
data {
  int<lower=0> N;
  int<lower=1> D;
  matrix[N, D] Z;
  vector[N] first;
  array[N] real second;
  array[N] int<lower=0> spots;
}
parameters {
  vector[D] effect;
  real scale;
  real shift;
  vector<lower=0>[2] noise;
  real rate;
}
model {
  vector[N] mean_first = rep_vector(shift, N);
  effect ~ normal(0, 2);
  rate ~ normal(0, 3);
  for (n in 1 : N) {
    second[n] ~ normal(scale * Z[n, 2] - 3 * shift, noise[2]);
  }
  mean_first += Z * effect;
  first ~ normal(mean_first, noise[1]);
  noise ~ gamma(2, 2);
  spots ~ poisson_log(rate);
}
