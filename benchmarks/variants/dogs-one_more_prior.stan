// posterior: dogs-dogs_hierarchical
data {
  int<lower=0> n_dogs;
  int<lower=0> n_trials;
  array[n_dogs, n_trials] int<lower=0, upper=1> y;
}
transformed data {
  matrix[n_dogs, n_trials] shocks;
  matrix[n_dogs, n_trials] avoided;
  for (j in 1:n_dogs) {
    shocks[j, 1] = 0;
    avoided[j, 1] = 0;
    for (t in 2:n_trials) {
      shocks[j, t] = shocks[j, t - 1] + y[j, t - 1];
      avoided[j, t] = avoided[j, t - 1] + 1 - y[j, t - 1];
    }
  }
}
parameters {
  real<lower=0, upper=1> a;
  real<lower=0, upper=1> b;
}
model {
  a ~ beta(2, 1);
  for (j in 1:n_dogs) {
    for (t in 1:n_trials) {
      real p = a ^ shocks[j, t] * b ^ avoided[j, t];
      y[j, t] ~ bernoulli(p);
    }
  }
}
