// expect: none
// data: N = 5000; time = np.abs(normal(N)) + 0.1; arm = index(N, 2)
data {
  int<lower=0> N;
  vector<lower=0>[N] time;
  array[N] int<lower=1, upper=2> arm;
}
parameters {
  real<lower=0> shape;
  vector[2] pace;
}
model {
  shape ~ exponential(1);
  pace ~ normal(0, 1);
  for (n in 1 : N) {
    real z = shape * (log(time[n]) - pace[arm[n]]);
    target += z - 2 * log1p_exp(z);
  }
}
