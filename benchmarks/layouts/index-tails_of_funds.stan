// Degrees of freedom and a scale for each fund, with a trend of each row.
// expect: values by index
// data: N = 12000; F = 40; fund = index(N, F); change = normal(N); market = normal(N)
// other: heavy ~ gamma(2, 0.1); spread ~ normal(0, 0.3); [a, b] ~ std_normal(); change ~ student_t(heavy[fund], a + b * market, exp(spread[fund]));
data {
  int N; int F;
  array[N] int<lower=1, upper=F> fund;
  vector[N] change; vector[N] market;
}
parameters {
  vector<lower=0>[F] heavy;
  vector[F] spread;
  real a;
  real b;
}
model {
  heavy ~ gamma(2, 0.1);
  spread ~ normal(0, 0.3);
  a ~ std_normal();
  b ~ std_normal();
  for (n in 1:N)
    target += student_t_lpdf(change[n] | heavy[fund[n]], a + b * market[n], exp(spread[fund[n]]));
}
