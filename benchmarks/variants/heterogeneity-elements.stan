// posterior: Mh_data-Mh_model
data {
  int<lower=0> M;
  int<lower=0> T;
  array[M] int<lower=0, upper=T> y;
}
parameters {
  real<lower=0, upper=1> omega;
  real<lower=0, upper=1> mean_p;
  real<lower=0, upper=5> sigma;
  vector[M] z;
}
transformed parameters {
  vector[M] eps = logit(mean_p) + sigma * z;
}
model {
  vector[M] ll;
  for (i in 1:M) {
    if (y[i] > 0) {
      ll[i] = bernoulli_lpmf(1 | omega) + binomial_logit_lpmf(y[i] | T, eps[i]);
    } else {
      ll[i] = log_sum_exp(bernoulli_lpmf(1 | omega) + binomial_logit_lpmf(0 | T, eps[i]), bernoulli_lpmf(0 | omega));
    }
  }
  target += sum(ll);
  z ~ std_normal();
}
