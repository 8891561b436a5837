// As many outcomes as rows: rows of all of them are no fewer when they are reduced.
// expect: none
// data: T = 12; S = 15; trend = np.arange(T) / T; catches = normal(S, T) + 3
data {
  int T, S;
  vector[T] trend;
  array[S] vector[T] catches;
}
parameters {
  vector[S] a, b;
  vector<lower=0>[S] noise;
}
model {
  a ~ normal(0, 5);
  b ~ std_normal();
  noise ~ exponential(1);
  for (s in 1 : S) catches[s] ~ normal(a[s] + b[s] * trend, noise[s]);
}
