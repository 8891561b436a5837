// posterior: dogs-dogs
data { int<lower=0> n_dogs; int<lower=0> n_trials; array[n_dogs, n_trials] int<lower=0, upper=1> y; }
parameters { real c; real a; real s; }
model { for (j in 1:n_dogs) { int n = 0; for (t in 1:n_trials) { y[j, t] ~ bernoulli_logit(c + a * (t - 1 - n) + s * n); n += y[j, t]; } } c ~ normal(0, 100); a ~ normal(0, 100); s ~ normal(0, 100); }
