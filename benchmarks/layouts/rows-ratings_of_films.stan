// Ratings in order, a mean that two loops fill, and a loop that asks for cut points in order.
// expect: unique rows
// data: N = 9000; K = 5; J = 8; stars = index(N, K); genre = index(N, J); seen = bits(N)
// other: cut ~ normal(0, 3); z ~ std_normal(); b ~ normal(0, 1); tau ~ normal(0, 1); for (n in 1:N) stars[n] ~ ordered_logistic(b * seen[n] + tau * z[genre[n]], cut);
data {
  int N; int K; int J;
  array[N] int<lower=1, upper=K> stars; array[N] int<lower=1, upper=J> genre;
  vector[N] seen;
}
parameters {
  ordered[K - 1] cut;
  vector[J] z;
  real b;
  real<lower=0> tau;
}
model {
  vector[N] eta = b * seen;
  cut ~ normal(0, 3);
  z ~ std_normal();
  b ~ normal(0, 1);
  tau ~ normal(0, 1);
  for (n in 1:N)
    eta[n] += tau * z[genre[n]];
  for (n in 1:N)
    target += ordered_logistic_lpmf(stars[n] | eta[n], cut);
}
