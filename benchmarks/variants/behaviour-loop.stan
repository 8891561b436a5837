// posterior: Mb_data-Mb_model
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
  real<lower=0, upper=1> c;
}
model {
  for (i in 1:M) {
    real l = bernoulli_lpmf(y[i, 1] | p);
    for (j in 2:T) {
      l = l + bernoulli_lpmf(y[i, j] | y[i, j - 1] ? c : p);
    }
    if (s[i] == 0) {
      target += log_sum_exp(bernoulli_lpmf(1 | omega) + l, bernoulli_lpmf(0 | omega));
    } else {
      target += bernoulli_lpmf(1 | omega) + l;
    }
  }
}
