// posterior: Mt_data-Mt_model
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
  vector<lower=0, upper=1>[T] p;
}
model {
  for (i in 1:M) {
    real seen = 0;
    for (t in 1:T) seen += bernoulli_lpmf(y[i, t] | p[t]);
    if (s[i] > 0)
      target += bernoulli_lpmf(1 | omega) + seen;
    else
      target += log_sum_exp(bernoulli_lpmf(1 | omega) + seen, bernoulli_lpmf(0 | omega));
  }
}
