// A meta-regression of trials whose means are of different numbers of patients.
// expect: reduced rows
// data: T = 8000; D = 5; dose = normal(T, D); effect = normal(T); patients = rng.integers(5, 200, T)
// other: effect ~ normal(base + dose * slope, spread ./ root); base ~ normal(0, 5); slope ~ student_t(3, 0, 1); spread ~ gamma(2, 1);
data {
  int T;
  int D;
  matrix[T, D] dose;
  vector[T] effect;
  array[T] int<lower=1> patients;
}
transformed data {
  vector[T] root = sqrt(to_vector(patients));
}
parameters {
  real base;
  vector[D] slope;
  real<lower=0> spread;
}
model {
  base ~ normal(0, 5);
  slope ~ student_t(3, 0, 1);
  spread ~ gamma(2, 1);
  for (t in 1 : T) {
    effect[t] ~ normal(base + dose[t] * slope, spread / root[t]);
  }
}
