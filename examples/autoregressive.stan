// A stationary autoregressive series of order P with a level; the first P values are conditioned on.
data {
  int<lower=1> P;
  int<lower=P> T;
  vector[T] y;
}
parameters {
  real level;
  vector<lower=-1, upper=1>[P] phi;
  real<lower=0> sigma;
}
model {
  level ~ normal(0, 5);
  phi ~ normal(0, 0.5);
  sigma ~ exponential(1);
  for (t in (P + 1):T) {
    real mean_t = level;
    for (p in 1:P) mean_t += phi[p] * (y[t - p] - level);
    y[t] ~ normal(mean_t, sigma);
  }
}
generated quantities {
  real next = level;
  for (p in 1:P) next += phi[p] * (y[T + 1 - p] - level);
}
