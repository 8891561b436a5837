// posterior: Rate_2_data-Rate_2_model
data {
  int<lower=1> n1;
  int<lower=1> n2;
  int<lower=0> k1;
  int<lower=0> k2;
}
parameters {
  vector<lower=0, upper=1>[2] t;
}
transformed parameters {
  real delta = t[1] - t[2];
}
model {
  t ~ beta(1, 1);
  k1 ~ binomial(n1, t[1]);
  k2 ~ binomial(n2, t[2]);
}
