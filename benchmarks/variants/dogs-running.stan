// posterior: dogs-dogs_hierarchical
data { int n_dogs; int n_trials; array[n_dogs, n_trials] int<lower=0, upper=1> y; }
parameters { real<lower=0, upper=1> a; real<lower=0, upper=1> b; }
model { for (j in 1:n_dogs) { real lp = 0; for (t in 1:n_trials) { y[j, t] ~ bernoulli(exp(lp)); lp += y[j, t] == 1 ? log(a) : log(b); } } }
