// posterior: dugongs_data-dugongs_model
data {
  int N;
  array[N] real x;
  array[N] real Y;
}
parameters {
  real alpha;
  real beta;
  real<lower=0.5, upper=1> lambda;
  real<lower=0> tau;
}
transformed parameters {
  real sigma = 1 / sqrt(tau);
}
model {
  for (i in 1:N) Y[i] ~ normal(alpha - pow(lambda, x[i]) * beta, sigma);
  alpha ~ normal(0, 1000);
  beta ~ normal(0, 1000);
  lambda ~ beta(2, 2);
  tau ~ gamma(0.0001, 0.0001);
}
