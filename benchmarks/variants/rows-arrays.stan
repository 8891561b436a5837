// posterior: Mth_data-Mth_model
data {
  int M;
  int T;
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
  array[T] real<lower=0, upper=1> mean_p;
  real<lower=0, upper=5> sigma;
  vector[M] eps_raw;
}
model {
  array[M, T] real lp;
  array[M] real ll;
  for (i in 1:M) {
    for (j in 1:T) {
      lp[i, j] = logit(mean_p[j]) + sigma * eps_raw[i];
    }
  }
  for (i in 1:M) {
    ll[i] = 0;
    for (j in 1:T) {
      ll[i] = ll[i] + bernoulli_logit_lpmf(y[i, j] | lp[i, j]);
    }
  }
  for (i in 1:M) {
    if (s[i] > 0) {
      target += log(omega) + ll[i];
    } else {
      target += log_sum_exp(log(omega) + ll[i], log1m(omega));
    }
  }
  eps_raw ~ normal(0, 1);
}
