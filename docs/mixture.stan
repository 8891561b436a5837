// Two groups of measurements, 40 % and 60 %: which of the two means is the lower one makes two modes.
data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  vector[2] mu;
  real<lower=0> sigma;
}
model {
  sigma ~ gamma(2, 2);
  for (n in 1:N) target += log_mix(0.4, normal_lpdf(y[n] | mu[1], sigma), normal_lpdf(y[n] | mu[2], sigma));
}
