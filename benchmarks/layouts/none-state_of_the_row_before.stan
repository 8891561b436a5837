// expect: none
// data: T = 5000; J = 12; season = index(T, J); k = counts(T, 4)
data {
  int T;
  int J;
  array[T] int<lower=1, upper=J> season;
  array[T] int<lower=0> k;
}
parameters {
  vector[J] c;
  real<lower=0, upper=1> keep;
}
model {
  real state = 0;
  c ~ normal(0, 1);
  for (t in 1 : T) {
    state = keep * state + c[season[t]];
    k[t] ~ poisson_log(state);
  }
}
