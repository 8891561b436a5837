// posterior: irt_2pl-irt_2pl
data {
  int I;
  int J;
  array[I, J] int<lower=0, upper=1> y;
}
parameters {
  real<lower=0> sigma_theta;
  vector[J] theta;
  real<lower=0> sigma_a;
  vector<lower=0>[I] a;
  real mu_b;
  real<lower=0> sigma_b;
  vector[I] b;
}
model {
  matrix[I, J] eta;
  for (j in 1:J) for (i in 1:I) eta[i, j] = a[i] * (theta[j] - b[i]);
  for (i in 1:I) for (j in 1:J) y[i, j] ~ bernoulli_logit(eta[i, j]);
  b ~ normal(mu_b, sigma_b);
  a ~ lognormal(0, sigma_a);
  theta ~ normal(0, sigma_theta);
  sigma_theta ~ cauchy(0, 2);
  sigma_a ~ cauchy(0, 2);
  mu_b ~ normal(0, 5);
  sigma_b ~ cauchy(0, 2);
}
