// posterior: wells_data-wells_dist100_model
data {
  int<lower=0> N;
  array[N] int<lower=0, upper=1> switched;
  vector[N] dist;
}
parameters {
  real alpha;
  real beta;
}
model {
  real t = 0;
  for (n in 1:N) {
    t = t + bernoulli_logit_lpmf(switched[n] | alpha + beta * dist[n] / 100);
  }
  target += t;
  beta ~ normal(0, 1);
}
