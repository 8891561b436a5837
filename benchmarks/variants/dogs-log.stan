// posterior: dogs-dogs_hierarchical
data { int n_dogs; int n_trials; array[n_dogs, n_trials] int<lower=0, upper=1> y; }
parameters { real<lower=0, upper=1> a; real<lower=0, upper=1> b; }
model { for (j in 1:n_dogs) { int s = 0; for (t in 1:n_trials) { real lp = s * log(a) + (t - 1 - s) * log(b); target += y[j, t] == 1 ? lp : log1m_exp(lp); s += y[j, t]; } } }
