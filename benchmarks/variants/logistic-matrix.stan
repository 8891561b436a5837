// posterior: wells_data-wells_daae_c_model
data {
  int N;
  array[N] int<lower=0, upper=1> switched;
  vector[N] dist;
  vector[N] arsenic;
  vector[N] assoc;
  vector[N] educ;
}
transformed data {
  matrix[N, 5] x = [educ' / 4, assoc', arsenic', dist' / 100, ((dist - mean(dist)) .* (arsenic - mean(arsenic)))' / 100]';
}
parameters {
  vector[5] beta;
  real alpha;
}
model {
  beta ~ normal(0, 5);
  target += bernoulli_logit_lpmf(switched | x * beta + alpha);
}
