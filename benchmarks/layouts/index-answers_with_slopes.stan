// Items with a slope each, whose logarithm is the parameter.
// expect: values by index
// data: N = 24000; I = 60; P = 400; item = index(N, I); pupil = index(N, P); right = bits(N)
// other: log_slope ~ normal(0, 0.5); ease ~ std_normal(); skill ~ std_normal(); vector[N] a = exp(log_slope[item]); right ~ bernoulli_logit(a .* (skill[pupil] + ease[item]));
data {
  int N; int I; int P;
  array[N] int<lower=1, upper=I> item; array[N] int<lower=1, upper=P> pupil;
  array[N] int<lower=0, upper=1> right;
}
parameters {
  vector[I] log_slope;
  vector[I] ease;
  vector[P] skill;
}
model {
  log_slope ~ normal(0, 0.5);
  ease ~ std_normal();
  skill ~ std_normal();
  for (n in 1:N)
    right[n] ~ bernoulli_logit(exp(log_slope[item[n]]) * (skill[pupil[n]] + ease[item[n]]));
}
