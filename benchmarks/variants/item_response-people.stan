// posterior: lsat_data-lsat_model
data {
  int<lower=0> N;
  int<lower=0> R;
  int<lower=0> T;
  array[R] int<lower=0> culm;
  array[R, T] int<lower=0> response;
}
transformed data {
  array[T, N] int r;
  for (k in 1:T) {
    for (j in 1:culm[1]) {
      r[k, j] = response[1, k];
    }
    for (i in 2:R) {
      for (j in culm[i - 1] + 1:culm[i]) {
        r[k, j] = response[i, k];
      }
    }
  }
}
parameters {
  array[T] real alpha;
  vector[N] theta;
  real<lower=0> beta;
}
model {
  vector[N] ll = rep_vector(0, N);
  alpha ~ normal(0, 100);
  theta ~ normal(0, 1);
  beta ~ normal(0, 100);
  for (j in 1:N) {
    for (k in 1:T) {
      ll[j] = ll[j] + bernoulli_logit_lpmf(r[k, j] | beta * theta[j] - alpha[k]);
    }
  }
  target += sum(ll);
}
