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
transformed parameters {
  vector[N] p = inv_logit(alpha + beta * dist / 100);
}
model {
  switched ~ bernoulli(p);
  alpha ~ normal(0, 10);
}
