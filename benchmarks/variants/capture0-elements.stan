// posterior: M0_data-M0_model
data {
  int<lower=0> M;
  int<lower=0> T;
  array[M, T] int<lower=0, upper=1> y;
}
transformed data {
  array[M] int s;
  for (i in 1:M) {
    s[i] = sum(y[i]);
  }
}
parameters {
  real<lower=0, upper=1> omega;
  real<lower=0, upper=1> p;
}
model {
  vector[M] ll;
  for (i in 1:M) {
    if (s[i] > 0) {
      ll[i] = bernoulli_lpmf(1 | omega) + binomial_lpmf(s[i] | T, p);
    } else {
      ll[i] = log_sum_exp(bernoulli_lpmf(1 | omega) + binomial_lpmf(0 | T, p), bernoulli_lpmf(0 | omega));
    }
  }
  target += sum(ll);
}
