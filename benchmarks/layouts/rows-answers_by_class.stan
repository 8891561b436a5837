// Answers class by class: slices of a design of a few questions, with what the class has in common, as a GLM.
// expect: unique rows
// data: N = 14400; C = 36; K = 3; first = 1 + N // C * np.arange(C); last = N // C * np.arange(1, C + 1); asked = rng.integers(0, 3, (N, K)) * 1.0; right = bits(N); class_of = np.repeat(np.arange(1, C + 1), N // C)
// bind: C = N // 50
// other: of_class ~ normal(0, spread); by_question ~ normal(0, 1); spread ~ exponential(1); right ~ bernoulli_logit(of_class[class_of] + asked * by_question);
data {
  int<lower=0> N, C, K;
  array[C] int<lower=1> first, last;
  matrix[N, K] asked;
  array[N] int<lower=0, upper=1> right;
  array[N] int<lower=1, upper=C> class_of;
}
parameters {
  vector[C] of_class;
  vector[K] by_question;
  real<lower=0> spread;
}
model {
  of_class ~ normal(0, spread);
  by_question ~ normal(0, 1);
  spread ~ exponential(1);
  for (c in 1 : C)
    right[first[c] : last[c]] ~ bernoulli_logit_glm(asked[first[c] : last[c]], of_class[c], by_question);
}
