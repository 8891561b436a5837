// Answers in the order of pupils: of three additions of a row one waits for that of the row before.
// expect: rows by index
// data: R = 24000; P = 600; Q = 40; pupil = np.repeat(np.arange(1, P + 1), Q); task = np.tile(np.arange(1, Q + 1), P); right = bits(R)
// other: right ~ bernoulli_logit(slope[task] .* (ability[pupil] - difficulty[task])); slope ~ lognormal(0, 0.5); difficulty ~ normal(0, 3); ability ~ std_normal();
// bind: P = R // 40
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
