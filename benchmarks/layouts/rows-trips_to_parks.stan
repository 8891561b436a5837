// Whether households went to parks at all, and how often those did: a hurdle with counts above zero.
// expect: unique rows
// data: N = 12000; J = 12; town = index(N, J); dogs = index(N, 3) - 1.0; trips = rng.poisson(1.2, N)
// other: of_town ~ normal(0, 1); for (n in 1 : N) { real log_rate = of_town[town[n]] + by_dog * dogs[n]; target += trips[n] == 0 ? log(stays) : log1m(stays) + poisson_log_lpmf(trips[n] | log_rate) - log1m_exp(-exp(log_rate)); }
data {
  int<lower=0> N, J;
  array[N] int<lower=1, upper=J> town;
  vector[N] dogs;
  array[N] int<lower=0> trips;
}
parameters {
  vector[J] of_town;
  real by_dog;
  real<lower=0, upper=1> stays;
}
model {
  vector[N] rate = exp(of_town[town] + by_dog * dogs);
  of_town ~ normal(0, 1);
  for (n in 1 : N) {
    if (trips[n] == 0) {
      1 ~ bernoulli(stays);
    } else {
      0 ~ bernoulli(stays);
      trips[n] ~ poisson(rate[n]) T[1, ];
    }
  }
}
