// Means begin alike, and loops of their own change them: for night shifts, then by ward and for temporary staff.
// expect: reduced rows
// data: N = 9000; W = 12; ward = index(N, W); night = bits(N); temporary = rng.integers(0, 3, N); hours = normal(N); load = normal(N)
// other: vector[N] mu = rep_vector(base, N); for (n in 1 : N) if (night[n] == 1) mu[n] += extra[1]; for (n in 1 : N) { if (temporary[n] == 2) mu[n] += extra[2] * hours[n]; else mu[n] += of_ward[ward[n]]; } load ~ normal(mu, noise); of_ward ~ normal(0, 1); noise ~ exponential(1);
data {
  int<lower=0> N, W;
  array[N] int<lower=1, upper=W> ward;
  array[N] int night, temporary;
  vector[N] hours, load;
}
parameters {
  real base;
  vector[2] extra;
  vector[W] of_ward;
  real<lower=0> noise;
}
model {
  of_ward ~ normal(0, 1);
  noise ~ exponential(1);
  for (n in 1 : N) {
    real mu = base;
    if (night[n] == 1) mu += extra[1];
    if (temporary[n] == 2) mu += extra[2] * hours[n];
    else mu += of_ward[ward[n]];
    load[n] ~ normal(mu, noise);
  }
}
