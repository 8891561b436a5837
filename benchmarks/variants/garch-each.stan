// posterior: garch-garch11
data {
  int T;
  array[T] real y;
  real<lower=0> sigma1;
}
parameters {
  real mu;
  real<lower=0> alpha0;
  real<lower=0, upper=1> alpha1;
  real<lower=0, upper=(1 - alpha1)> beta1;
}
model {
  real sigma = sigma1;
  mu ~ normal(0, 10);
  y[1] ~ normal(mu, sigma);
  for (t in 2:T) {
    sigma = sqrt(alpha0 + alpha1 * square(y[t - 1] - mu) + beta1 * square(sigma));
    y[t] ~ normal(mu, sigma);
  }
}
