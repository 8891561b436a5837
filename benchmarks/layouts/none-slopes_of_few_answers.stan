// Two answers to each item: its slope is computed with them.
// expect: none
// data: N = 6000; I = 3000; P = 3000; item = 1 + np.arange(N) // 2; pupil = index(N, P); right = bits(N)
data {
  int N; int I; int P;
  array[N] int<lower=1, upper=I> item; array[N] int<lower=1, upper=P> pupil;
  array[N] int<lower=0, upper=1> right;
}
parameters {
  vector[I] log_slope;
  vector[P] skill;
}
model {
  log_slope ~ normal(0, 0.5);
  skill ~ std_normal();
  for (n in 1:N)
    right[n] ~ bernoulli_logit(exp(log_slope[item[n]]) * skill[pupil[n]]);
}
