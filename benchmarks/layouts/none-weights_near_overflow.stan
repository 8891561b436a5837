// Weights as an importance sampler leaves them, some near the largest number: rows of weighted squares would overflow.
// expect: none
// data: N = 4000; x = normal(N); y = normal(N); w = np.where(rng.random(N) < 0.01, 1e300, 1.0)
data {
  int N;
  vector[N] x;
  vector[N] y;
  vector<lower=0>[N] w;
}
parameters {
  real a;
  real b;
}
model {
  for (i in 1 : N) {
    target += w[i] / 1e300 * normal_lpdf(y[i] | a + b * x[i], 2);
  }
}
