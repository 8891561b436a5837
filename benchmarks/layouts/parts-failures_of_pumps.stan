// Pumps that failed, and others that run on: Weibull times with a hazard by load and site.
// expect: parts of rows
// data: N = 12000; J = 25; site = index(N, J); load = normal(N); failed = bits(N); hours = rng.weibull(1.4, N) + 0.01
// other: shape ~ exponential(1); of_site ~ normal(0, 1); vector[N] scale = exp(level + of_site[site] + by_load * load); for (n in 1 : N) target += failed[n] == 1 ? weibull_lpdf(hours[n] | shape, scale[n]) : weibull_lccdf(hours[n] | shape, scale[n]);
data {
  int<lower=0> N, J;
  array[N] int<lower=1, upper=J> site;
  vector[N] load;
  array[N] int<lower=0, upper=1> failed;
  vector<lower=0>[N] hours;
}
parameters {
  real<lower=0> shape;
  real level, by_load;
  vector[J] of_site;
}
model {
  shape ~ exponential(1);
  of_site ~ normal(0, 1);
  for (n in 1 : N) {
    real eta = level + of_site[site[n]] + by_load * load[n];
    if (failed[n])
      hours[n] ~ weibull(shape, exp(eta));
    else
      target += weibull_lccdf(hours[n] | shape, exp(eta));
  }
}
