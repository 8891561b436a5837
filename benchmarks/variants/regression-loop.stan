// posterior: kidiq-kidscore_interaction
data {
  int<lower=0> N;
  vector[N] kid_score;
  vector[N] mom_iq;
  vector[N] mom_hs;
}
parameters {
  vector[4] beta;
  real<lower=0> sigma;
}
model {
  sigma ~ cauchy(0, 2.5);
  beta ~ normal(0, 100);
  for (n in 1:N)
    kid_score[n] ~ normal(beta[1] + beta[2] * mom_hs[n] + beta[3] * mom_iq[n] + beta[4] * mom_hs[n] * mom_iq[n], sigma);
}
