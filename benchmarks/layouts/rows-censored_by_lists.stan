// Times of which a program lists the seen and the censored ones, with a scale of each row.
// expect: unique rows
// data: N = 8000; W = 6; ward = index(N, W); treated = bits(N); month = rng.integers(1, 30, N) / 10; seen = bits(N)
// bind: W = 6
// other: for (n in 1 : N) { real scale = exp(-(base + of_ward[ward[n]] + effect * treated[n]) / shape); if (seen[n] == 1) month[n] ~ weibull(shape, scale); else target += weibull_lccdf(month[n] | shape, scale); } of_ward ~ std_normal(); base ~ std_normal(); effect ~ std_normal(); shape ~ gamma(4, 2);
data {
  int<lower=0> N, W;
  array[N] int<lower=1, upper=W> ward;
  array[N] int<lower=0, upper=1> treated, seen;
  vector<lower=0>[N] month;
}
transformed data {
  int n_seen = sum(seen);
  array[n_seen] int event;
  array[N - n_seen] int left;
  {
    int e = 1, l = 1;
    for (n in 1 : N) {
      if (seen[n] == 1) {
        event[e] = n;
        e += 1;
      } else {
        left[l] = n;
        l += 1;
      }
    }
  }
}
parameters {
  real base, effect;
  vector[W] of_ward;
  real<lower=0> shape;
}
model {
  vector[N] scale = exp(-(base + of_ward[ward] + effect * to_vector(treated)) / shape);
  base ~ std_normal();
  of_ward ~ std_normal();
  effect ~ std_normal();
  shape ~ gamma(4, 2);
  month[event] ~ weibull(shape, scale[event]);
  target += weibull_lccdf(month[left] | shape, scale[left]);
}
