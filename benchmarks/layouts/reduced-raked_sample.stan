// A survey whose respondents have weights: log densities times data.
// expect: reduced rows
// data: N = 9000; R = 12; K = 5; A = normal(N, K); region = index(N, R); y = normal(N); rake = rng.gamma(2, 0.5, N)
// other: vector[N] each; for (i in 1 : N) each[i] = normal_lpdf(y[i] | A[i] * beta + of_region[region[i]], sigma); target += dot_product(rake, each); beta ~ normal(0, 2); of_region ~ normal(0, sd_region); sd_region ~ exponential(1); sigma ~ exponential(1);
data {
  int N;
  int R;
  int K;
  matrix[N, K] A;
  array[N] int<lower=1, upper=R> region;
  vector[N] y;
  vector<lower=0>[N] rake;
}
parameters {
  vector[K] beta;
  vector[R] of_region;
  real<lower=0> sd_region, sigma;
}
model {
  beta ~ normal(0, 2);
  of_region ~ normal(0, sd_region);
  sd_region ~ exponential(1);
  sigma ~ exponential(1);
  for (i in 1 : N) {
    target += rake[i] * normal_lpdf(y[i] | of_region[region[i]] + A[i] * beta, sigma);
  }
}
