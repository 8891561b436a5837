// Rents that a ceiling or a floor hides for some flats: censored means, which are a product with a design.
// expect: reduced rows
// data: N = 6000; K = 7; X = normal(N, K); rent = np.clip(X.sum(1) + normal(N), -3, 3.5)
// other: for (n in 1 : N) { real fit = base + X[n] * worth; if (rent[n] > -3 && rent[n] < 3.5) target += normal_lpdf(rent[n] | fit, noise); else if (rent[n] > 0) target += normal_lccdf(3.5 | fit, noise); else target += normal_lcdf(-3 | fit, noise); } base ~ normal(0, 5); worth ~ std_normal(); noise ~ exponential(1);
data {
  int<lower=0> N, K;
  matrix[N, K] X;
  vector[N] rent;
}
parameters {
  real base;
  vector[K] worth;
  real<lower=0> noise;
}
transformed parameters {
  vector[N] mu = base + X * worth;
}
model {
  base ~ normal(0, 5);
  worth ~ std_normal();
  noise ~ exponential(1);
  for (n in 1 : N) {
    if (rent[n] >= 3.5) target += normal_lccdf(3.5 | mu[n], noise);
    else if (rent[n] <= -3) target += normal_lcdf(-3 | mu[n], noise);
    else rent[n] ~ normal(mu[n], noise);
  }
}
