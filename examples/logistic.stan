// Logistic regression of a binary outcome on standardised predictors.
data {
  int<lower=0> N;
  int<lower=1> K;
  matrix[N, K] x;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real alpha;
  vector[K] beta;
}
model {
  alpha ~ normal(0, 2.5);
  beta ~ normal(0, 2.5);
  y ~ bernoulli_logit(alpha + x * beta);
}
generated quantities {
  real accuracy = 0;
  for (n in 1:N) {
    accuracy += ((alpha + x[n] * beta > 0) == y[n]) / (1.0 * N);
  }
}
