// The dose counts for those who were treated, an if in each row; it is not known for others.
// expect: reduced rows
// data: N = 12000; treated = bits(N); dose = np.where(treated, 1 + np.abs(normal(N)), 0); age = normal(N); pressure = normal(N)
// other: pressure ~ normal(base + of_age * age + of_dose * (dose .* to_vector(treated)), noise); of_age ~ normal(0, 1); noise ~ exponential(1);
data {
  int<lower=0> N;
  array[N] int<lower=0, upper=1> treated;
  vector[N] dose, age, pressure;
}
parameters {
  real base, of_age, of_dose;
  real<lower=0> noise;
}
model {
  of_age ~ normal(0, 1);
  noise ~ exponential(1);
  for (n in 1 : N) {
    real mean_pressure = base + of_age * age[n];
    if (treated[n] == 1) mean_pressure += of_dose * dose[n];
    pressure[n] ~ normal(mean_pressure, noise);
  }
}
