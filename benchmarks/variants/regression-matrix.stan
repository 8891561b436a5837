// posterior: kidiq-kidscore_interaction
data {
  int<lower=0> N;
  vector[N] kid_score;
  vector[N] mom_iq;
  vector[N] mom_hs;
}
transformed data {
  matrix[N, 3] X = [mom_iq', mom_hs', (mom_iq .* mom_hs)']';
}
parameters {
  real intercept;
  vector[3] slopes;
  real<lower=0> sigma;
}
model {
  kid_score ~ normal(X * slopes + intercept, sigma);
  sigma ~ cauchy(0, 2.5);
}
