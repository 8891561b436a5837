// posterior: Rate_3_data-Rate_3_model
functions {
  real f(int k, int n, real p) {
    return binomial_lpmf(k | n, p);
  }
}
data {
  int<lower=1> n1;
  int<lower=1> n2;
  int<lower=0> k1;
  int<lower=0> k2;
}
parameters {
  real<lower=0, upper=1> theta;
}
model {
  target += f(k1, n1, theta) + f(k2, n2, theta);
  theta ~ beta(1, 1);
}
