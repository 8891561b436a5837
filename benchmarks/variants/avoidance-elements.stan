// posterior: dogs-dogs
data {
  int<lower=0> n_dogs;
  int<lower=0> n_trials;
  array[n_dogs, n_trials] int<lower=0, upper=1> y;
}
transformed data {
  matrix[n_dogs, n_trials] av;
  matrix[n_dogs, n_trials] sh;
  for (j in 1:n_dogs) {
    av[j, 1] = 0;
    sh[j, 1] = 0;
    for (t in 2:n_trials) {
      av[j, t] = av[j, t - 1] + 1 - y[j, t - 1];
      sh[j, t] = sh[j, t - 1] + y[j, t - 1];
    }
  }
}
parameters {
  vector[3] beta;
}
model {
  array[n_dogs, n_trials] real ll;
  for (i in 1:n_dogs) {
    for (j in 1:n_trials) {
      ll[i, j] = bernoulli_logit_lpmf(y[i, j] | beta[1] + beta[2] * av[i, j] + beta[3] * sh[i, j]);
    }
  }
  for (i in 1:n_dogs) {
    target += sum(ll[i]);
  }
  beta ~ normal(0, 100);
}
