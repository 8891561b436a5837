// No two rows are equal, and an arm has two rows or three: an order of rows would leave nearly as much to add.
// expect: none
// data: N = 5000; J = 2000; time = np.abs(normal(N)) + 0.1; arm = index(N, J)
data {
  int<lower=0> N;
  int<lower=1> J;
  vector<lower=0>[N] time;
  array[N] int<lower=1, upper=J> arm;
}
parameters {
  real<lower=0> shape;
  vector[J] pace;
}
model {
  shape ~ exponential(1);
  pace ~ normal(0, 1);
  for (n in 1 : N) {
    real z = shape * (log(time[n]) - pace[arm[n]]);
    target += z - 2 * log1p_exp(z);
  }
}
