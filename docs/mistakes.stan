// What the diagnostics look like: `ulam check docs/mistakes.stan`.
data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  int half = N / 2.0;
  mu ~ normal(0, 10);
  y ~ normall(mu, sigmo);
}
