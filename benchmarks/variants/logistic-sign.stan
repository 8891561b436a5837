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
  for (n in 1:N) target += -log1p_exp(-(2 * switched[n] - 1) * (a + b * dist[n] / 100));
}
