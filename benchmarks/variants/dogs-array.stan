// posterior: dogs-dogs_hierarchical
data { int n_dogs; int n_trials; array[n_dogs, n_trials] int<lower=0, upper=1> y; }
transformed data { array[n_dogs, n_trials] int s = rep_array(0, n_dogs, n_trials); for (j in 1:n_dogs) for (t in 2:n_trials) s[j, t] = s[j, t - 1] + y[j, t - 1]; }
parameters { real<lower=0, upper=1> a; real<lower=0, upper=1> b; }
model { a ~ beta(1, 1); for (j in 1:n_dogs) { vector[n_trials] p; for (t in 1:n_trials) p[t] = pow(a, s[j, t]) * pow(b, t - 1 - s[j, t]); y[j] ~ bernoulli(p); } }
