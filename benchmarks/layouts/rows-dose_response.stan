// expect: unique rows
// data: animals = 20000; dose = np.round(rng.integers(0, 6, animals) * 0.5, 1); sex = index(animals, 2); died = bits(animals)
// other: vector[animals] p; for (a in 1 : animals) p[a] = (1 - immune) * Phi(start[sex[a]] + slope * dose[a]); died ~ bernoulli(p); start ~ normal(0, 2); slope ~ normal(0, 1);
// bind: dose = np.round(rng.integers(0, animals // 12, animals) * 0.5, 1)
data {
  int<lower=0> animals;
  vector[animals] dose;
  array[animals] int<lower=1, upper=2> sex;
  array[animals] int<lower=0, upper=1> died;
}
parameters {
  vector[2] start;
  real slope;
  real<lower=0, upper=1> immune;
}
model {
  start ~ normal(0, 2);
  slope ~ normal(0, 1);
  for (a in 1 : animals) {
    real p = (1 - immune) * Phi(start[sex[a]] + slope * dose[a]);
    died[a] ~ bernoulli(p);
  }
}
