// posterior: nes_logit_data-nes_logit_model
data {
  int<lower=0> N;
  vector[N] income;
  array[N] int<lower=0, upper=1> vote;
}
parameters {
  real alpha;
  real beta;
}
model {
  vector[N] ll;
  for (n in 1:N) {
    ll[n] = bernoulli_logit_lpmf(vote[n] | alpha + beta * income[n]);
  }
  target += sum(ll);
}
