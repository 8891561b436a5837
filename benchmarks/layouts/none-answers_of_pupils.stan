// Of three additions of a row one has to wait for the one before: the others hide it.
// expect: none
// data: R = 24000; P = 600; Q = 40; pupil = np.repeat(np.arange(1, P + 1), Q); task = np.tile(np.arange(1, Q + 1), P); right = bits(R)
data {
  int R;
  int P;
  int Q;
  array[R] int pupil;
  array[R] int task;
  array[R] int<lower=0, upper=1> right;
}
parameters {
  vector[P] ability;
  vector[Q] difficulty;
  vector<lower=0>[Q] slope;
}
model {
  vector[R] z;
  ability ~ std_normal();
  difficulty ~ normal(0, 3);
  slope ~ lognormal(0, 0.5);
  for (r in 1 : R) {
    z[r] = slope[task[r]] * (ability[pupil[r]] - difficulty[task[r]]);
  }
  right ~ bernoulli_logit(z);
}
