// posterior: wells_data-wells_dist100_model
data {
  int N;
  array[N] int<lower=0, upper=1> switched;
  vector[N] dist;
}
parameters {
  real alpha;
  real beta;
}
model {
  alpha ~ normal(0, 5);
  for (n in 1:N) switched[n] ~ bernoulli_logit(alpha + beta * dist[n] / 100);
}
