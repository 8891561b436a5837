// Several outcomes with a scale each, column by column of a matrix, with means that are a product of matrices.
// expect: reduced rows
// data: N = 4000; K = 4; D = 3; X = normal(N, D); content = X @ normal(D, K) + normal(N, K)
// bind: K = 4
// other: to_vector(B) ~ normal(0, 2); a ~ normal(0, 5); noise ~ exponential(1); for (n in 1 : N) content[n] ~ normal(a + X[n] * B, noise);
data {
  int N, K, D;
  matrix[N, D] X;
  matrix[N, K] content;
}
parameters {
  matrix[D, K] B;
  row_vector[K] a;
  vector<lower=0>[K] noise;
}
model {
  matrix[N, K] eta = X * B;
  to_vector(B) ~ normal(0, 2);
  a ~ normal(0, 5);
  noise ~ exponential(1);
  for (k in 1 : K) content[ , k] ~ normal(a[k] + eta[ , k], noise[k]);
}
