// Seeds that came up, of those sown in a cell, by treatment and tray; their probabilities are filled in a loop.
// expect: unique rows
// data: N = 12000; J = 20; tray = index(N, J); sown = index(N, 4) + 2; up = rng.binomial(sown, 0.6); treated = bits(N) * 1.0
// other: of_tray ~ normal(0, spread); spread ~ exponential(1); up ~ binomial_logit(sown, of_tray[tray] + effect * treated);
data {
  int<lower=0> N, J;
  array[N] int<lower=1, upper=J> tray;
  array[N] int<lower=0> sown, up;
  vector[N] treated;
}
parameters {
  vector[J] of_tray;
  real effect;
  real<lower=0> spread;
}
model {
  vector[N] p;
  of_tray ~ normal(0, spread);
  spread ~ exponential(1);
  for (n in 1 : N) {
    p[n] = inv_logit(of_tray[tray[n]] + effect * treated[n]);
  }
  up ~ binomial(sown, p);
}
