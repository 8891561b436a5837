// posterior: Rate_3_data-Rate_3_model
data {
  int<lower=1> n1;
  int<lower=1> n2;
  int<lower=0> k1;
  int<lower=0> k2;
}
transformed data {
  array[2] int n = {n1, n2};
  array[2] int k = {k1, k2};
}
parameters {
  real<lower=0, upper=1> theta;
}
model {
  theta ~ beta(1.5, 2);
  for (i in 1:2) k[i] ~ binomial(n[i], theta);
}
