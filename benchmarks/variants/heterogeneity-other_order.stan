// posterior: Mh_data-Mh_model
// names of data: {"M": "n", "T": "times", "y": "seen"}
data {
  int<lower=0> n;
  int<lower=0> times;
  array[n] int<lower=0, upper=times> seen;
}
parameters {
  real<lower=0, upper=1> included;
  real<lower=0, upper=1> average;
  real<lower=0, upper=5> spread;
  vector[n] z;
}
transformed parameters {
  vector[n] effect = spread * z + logit(average);
}
model {
  for (k in 1:n) {
    if (seen[k] == 0)
      target += log_sum_exp(bernoulli_lpmf(0 | included), binomial_logit_lpmf(0 | times, effect[k]) + bernoulli_lpmf(1 | included));
    else
      target += binomial_logit_lpmf(seen[k] | times, effect[k]) + bernoulli_lpmf(1 | included);
  }
  z ~ std_normal();
}
