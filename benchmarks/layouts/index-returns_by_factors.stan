// A design of factors beside a level, a scale and degrees of freedom of each market.
// expect: values by index
// data: N = 10000; M = 30; K = 5; market = index(N, M); ret = normal(N); F = normal(N, K)
// other: heavy ~ gamma(2, 0.1); level ~ std_normal(); spread ~ normal(0, 0.3); b ~ std_normal(); for (n in 1:N) ret[n] ~ student_t(heavy[market[n]], level[market[n]] + F[n] * b, exp(spread[market[n]]));
data {
  int N; int M; int K;
  array[N] int<lower=1, upper=M> market;
  vector[N] ret;
  matrix[N, K] F;
}
parameters {
  vector<lower=0>[M] heavy;
  vector[M] level;
  vector[M] spread;
  vector[K] b;
}
model {
  heavy ~ gamma(2, 0.1);
  level ~ std_normal();
  spread ~ normal(0, 0.3);
  b ~ std_normal();
  ret ~ student_t(heavy[market], level[market] + F * b, exp(spread[market]));
}
