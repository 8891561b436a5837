// posterior: Mh_data-Mh_model
data { int<lower=0> M; int<lower=0> T; array[M] int<lower=0, upper=T> y; }
parameters { real<lower=0, upper=1> w; real<lower=0, upper=1> mp; real<lower=0, upper=5> s; vector[M] e; }
transformed parameters { vector[M] eta = s * e + logit(mp); }
model { for (i in 1:M) { e[i] ~ normal(0, 1); if (y[i] == 0) target += log_mix(w, binomial_logit_lpmf(0 | T, eta[i]), 0); else target += log(w) + binomial_logit_lpmf(y[i] | T, eta[i]); } }
