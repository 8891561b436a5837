// Few counts of claims, each row with covariates of its own: what counts alone decide is computed once for each count.
// expect: unique rows
// data: policies = 12000; R = normal(policies, 3); claims = counts(policies, 2)
// other: for (n in 1 : size(claims)) claims[n] ~ neg_binomial_2_log(base + R[n] * risk, size); base ~ normal(0, 2); risk ~ normal(0, 1); size ~ gamma(2, 0.1);
data {
  int<lower=0> policies;
  matrix[policies, 3] R;
  array[policies] int<lower=0> claims;
}
parameters {
  real base;
  vector[3] risk;
  real<lower=0> size;
}
model {
  claims ~ neg_binomial_2_log(base + R * risk, size);
  base ~ normal(0, 2);
  risk ~ normal(0, 1);
  size ~ gamma(2, 0.1);
}
