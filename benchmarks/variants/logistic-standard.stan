// posterior: wells_data-wells_dist100_model
data {
  int N;
  array[N] int<lower=0, upper=1> switched;
  vector[N] dist;
}
parameters {
  real a;
  real b;
}
model {
  switched ~ bernoulli_logit(a + b * (dist - mean(dist)) / sd(dist));
}
