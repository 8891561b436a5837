// posterior: Mth_data-Mth_model
data {
  int<lower=0> M;
  int<lower=0> T;
  array[M, T] int<lower=0, upper=1> y;
}
transformed data {
  array[M] int s;
  for (i in 1:M) s[i] = sum(y[i]);
}
parameters {
  real<lower=0, upper=1> omega;
  array[T] real<lower=0, upper=1> mean_p;
  real<lower=0, upper=5> sigma;
  vector[M] eps_raw;
}
transformed parameters {
  matrix[M, T] logit_p;
  for (i in 1:M) for (t in 1:T) logit_p[i, t] = sigma * eps_raw[i] + logit(mean_p[t]);
}
model {
  for (i in 1:M) {
    if (s[i] == 0) {
      target += log_sum_exp(bernoulli_lpmf(0 | omega), bernoulli_logit_lpmf(y[i] | logit_p[i]) + bernoulli_lpmf(1 | omega));
    } else {
      target += bernoulli_logit_lpmf(y[i] | logit_p[i]) + bernoulli_lpmf(1 | omega);
    }
  }
  sigma ~ normal(2, 2);
  eps_raw ~ std_normal();
}
