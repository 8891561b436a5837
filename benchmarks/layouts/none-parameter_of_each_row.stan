// expect: none
// data: N = 4000; k = counts(N, 2); unit = index(N, 3)
data {
  int<lower=0> N;
  array[N] int<lower=0> k;
  array[N] int<lower=1, upper=3> unit;
}
parameters {
  vector[N] noise;
  vector[3] level;
}
model {
  noise ~ std_normal();
  for (n in 1 : N) {
    k[n] ~ poisson_log(level[unit[n]] + 0.3 * noise[n]);
  }
}
