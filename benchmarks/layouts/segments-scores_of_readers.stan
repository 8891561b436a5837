// Readers in order, each with a vector of two coefficients; every row makes a vector of its data.
// expect: rows by index
// data: N = 24000; J = 120; reader = np.sort(index(N, J)); day = normal(N); solved = bits(N)
// bind: J = max(1, N // 200)
// other: for (j in 1 : J) of_reader[j] ~ normal(0, spread); spread ~ exponential(1); for (n in 1 : N) solved[n] ~ bernoulli_logit(of_reader[reader[n], 1] + of_reader[reader[n], 2] * day[n]);
data {
  int<lower=0> N, J;
  array[N] int<lower=1, upper=J> reader;
  vector[N] day;
  array[N] int<lower=0, upper=1> solved;
}
parameters {
  array[J] vector[2] of_reader;
  vector<lower=0>[2] spread;
}
model {
  spread ~ exponential(1);
  for (j in 1 : J) {
    of_reader[j] ~ normal(0, spread);
  }
  for (n in 1 : N) {
    vector[2] z = [1, day[n]]';
    solved[n] ~ bernoulli_logit(dot_product(z, of_reader[reader[n]]));
  }
}
