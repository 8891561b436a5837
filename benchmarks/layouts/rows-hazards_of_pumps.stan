// A hazard that is a power of time, with censored pumps; the other form writes the powers.
// expect: unique rows
// data: N = 6000; sites = 4; site = index(N, sites); months = rng.integers(1, 25, N) * 1.0; failed = bits(N); sealed = bits(N)
// other: for (n in 1 : N) { real log_rate = level[site[n]] + of_seal * sealed[n]; target += failed[n] * (log_rate + log(shape) + (shape - 1) * log(months[n])) - exp(log_rate) * months[n] ^ shape; } level ~ normal(-3, 1); of_seal ~ normal(0, 1); shape ~ lognormal(0, 0.5);
data {
  int<lower=0> N, sites;
  array[N] int<lower=1, upper=sites> site;
  vector<lower=0>[N] months;
  array[N] int<lower=0, upper=1> failed, sealed;
}
transformed data {
  vector[N] log_months = log(months);
}
parameters {
  vector[sites] level;
  real of_seal;
  real<lower=0> shape;
}
model {
  level ~ normal(-3, 1);
  of_seal ~ normal(0, 1);
  shape ~ lognormal(0, 0.5);
  for (n in 1 : N) {
    real log_rate = level[site[n]] + of_seal * sealed[n];
    target += failed[n] * (log_rate + log(shape) + (shape - 1) * log_months[n]);
    target += -exp(log_rate) * exp(shape * log_months[n]);
  }
}
