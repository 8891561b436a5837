// posterior: dogs-dogs_hierarchical
data { int n_dogs; int n_trials; array[n_dogs, n_trials] int<lower=0, upper=1> y; }
transformed data {
  matrix[n_dogs, n_trials] s; matrix[n_dogs, n_trials] v;
  for (j in 1:n_dogs) { s[j, 1] = 0; v[j, 1] = 0;
    for (t in 2:n_trials) { s[j, t] = s[j, t - 1] + y[j, t - 1]; v[j, t] = v[j, t - 1] + 1 - y[j, t - 1]; } }
}
parameters { real<lower=0, upper=1> a; real<lower=0, upper=1> b; }
transformed parameters {
  matrix[n_dogs, n_trials] p;
  for (j in 1:n_dogs) for (t in 1:n_trials) p[j, t] = a ^ s[j, t] * b ^ v[j, t];
}
model {
  for (j in 1:n_dogs) for (t in 1:n_trials) y[j, t] ~ bernoulli(p[j, t]);
}
