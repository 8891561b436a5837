// posterior: dogs-dogs_hierarchical
functions {
  real prob(real s, real v, real a, real b) {
    return exp(s * log(a) + v * log(b));
  }
}
data {
  int n_dogs;
  int n_trials;
  array[n_dogs, n_trials] int<lower=0, upper=1> y;
}
transformed data {
  matrix[n_dogs, n_trials] s;
  matrix[n_dogs, n_trials] v;
  for (j in 1:n_dogs) {
    s[j, 1] = 0;
    v[j, 1] = 0;
    for (t in 2:n_trials) {
      s[j, t] = s[j, t - 1] + y[j, t - 1];
      v[j, t] = v[j, t - 1] + 1 - y[j, t - 1];
    }
  }
}
parameters {
  real<lower=0, upper=1> a;
  real<lower=0, upper=1> b;
}
model {
  for (j in 1:n_dogs) {
    for (t in 1:n_trials) {
      target += bernoulli_lpmf(y[j, t] | prob(s[j, t], v[j, t], a, b));
    }
  }
}
