// The design is the logarithms of the data, and their powers, column by column; a loop that counts by itself goes over the rows.
// expect: reduced rows
// data: N = 12000; K = 4; price = 1 + np.abs(normal(N, K)); sold = normal(N)
// other: matrix[N, K] Z = log(price); sold ~ normal(base + Z * by_log + square(Z) * by_square, noise); by_log ~ normal(0, 1); by_square ~ normal(0, 1); noise ~ exponential(1);
data {
  int<lower=0> N, K;
  matrix<lower=0>[N, K] price;
  vector[N] sold;
}
parameters {
  real base;
  vector[K] by_log, by_square;
  real<lower=0> noise;
}
model {
  matrix[N, 2 * K] Z;
  vector[2 * K] effect = append_row(by_log, by_square);
  for (k in 1 : K) {
    Z[, k] = log(price[, k]);
    Z[, K + k] = Z[, k] .* Z[, k];
  }
  by_log ~ normal(0, 1);
  by_square ~ normal(0, 1);
  noise ~ exponential(1);
  int n = 1;
  while (n <= N) {
    sold[n] ~ normal(base + Z[n] * effect, noise);
    n += 1;
  }
}
