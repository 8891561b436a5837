// expect: reduced rows
// data: J = 300; n = rng.poisson(60, J); N = int(n.sum()); sensor = np.repeat(np.arange(1, J + 1), n); signal = 2 + normal(N)
// other: for (k in 1 : N) signal[k] ~ normal(shift[sensor[k]], noise); shift ~ normal(0, scale); noise ~ exponential(1); scale ~ exponential(1);
data {
  int J;
  array[J] int<lower=0> n;
  int N;
  array[N] int sensor;
  vector[N] signal;
}
parameters {
  vector[J] shift;
  real<lower=0> noise;
  real<lower=0> scale;
}
model {
  int pos = 1;
  for (j in 1 : J) {
    target += normal_lpdf(segment(signal, pos, n[j]) | shift[j], noise);
    pos += n[j];
  }
  shift ~ normal(0, scale);
  noise ~ exponential(1);
  scale ~ exponential(1);
}
