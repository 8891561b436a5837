// posterior: Rate_3_data-Rate_3_model
// names of data: {"n1": "trials_a", "n2": "trials_b", "k1": "hits_a", "k2": "hits_b"}
data {
  int<lower=1> trials_a;
  int<lower=1> trials_b;
  int<lower=0> hits_a;
  int<lower=0> hits_b;
}
parameters {
  real<lower=0, upper=1> rate;
}
model {
  target += binomial_lpmf(hits_b | trials_b, rate);
  target += binomial_lpmf(hits_a | trials_a, rate);
  target += beta_lpdf(rate | 1, 1);
}
