// posterior: dogs-dogs_hierarchical
data { int n_dogs; int n_trials; array[n_dogs, n_trials] int<lower=0, upper=1> y; }
parameters { real<lower=0, upper=1> a; real<lower=0, upper=1> b; }
model { a ~ uniform(0, 1); for (j in 1:n_dogs) { real p = 1; for (t in 1:n_trials) { target += y[j, t] == 1 ? log(p) : log1m(p); p *= y[j, t] == 1 ? a : b; } } }
