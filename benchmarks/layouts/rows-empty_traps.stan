// The program lists traps that caught nothing, and the others; their means are a vector of all.
// expect: unique rows
// data: N = 10000; caught = (rng.random(N) < .5) * counts(N, 3); bait = bits(N) * 1.0; site = index(N, 12)
// other: a ~ normal(0, 2); b ~ normal(0, 1); u ~ std_normal(); tau ~ normal(0, 1); for (n in 1:N) { real eta = a + b * bait[n] + tau * u[site[n]]; if (caught[n] == 0) target += log_mix(p, 0, poisson_log_lpmf(0 | eta)); else target += log1m(p) + poisson_log_lpmf(caught[n] | eta); }
data {
  int N;
  array[N] int<lower=0> caught;
  vector[N] bait;
  array[N] int<lower=1, upper=12> site;
}
transformed data {
  int empty = 0;
  for (n in 1:N)
    empty += caught[n] == 0;
  array[empty] int none;
  array[N - empty] int some;
  {
    int i = 0;
    int j = 0;
    for (n in 1:N) {
      if (caught[n] == 0) {
        i += 1;
        none[i] = n;
      } else {
        j += 1;
        some[j] = n;
      }
    }
  }
}
parameters {
  real a;
  real b;
  vector[12] u;
  real<lower=0> tau;
  real<lower=0, upper=1> p;
}
model {
  vector[N] eta = a + b * bait + tau * u[site];
  a ~ normal(0, 2);
  b ~ normal(0, 1);
  u ~ std_normal();
  tau ~ normal(0, 1);
  for (k in 1:empty)
    target += log_mix(p, 0, poisson_log_lpmf(0 | eta[none[k]]));
  target += (N - empty) * log1m(p);
  target += poisson_log_lpmf(caught[some] | eta[some]);
}
