// posterior: wells_data-wells_dist100_model
// names of data: {"switched": "y", "dist": "metres"}
data {
  int N;
  array[N] int<lower=0, upper=1> y;
  vector[N] metres;
}
parameters {
  real a;
  real b;
}
model {
  y ~ bernoulli_logit(b * (metres / 100) + a);
}
