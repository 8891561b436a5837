// Counts by site and week with an effect of the week; the covariate has few values.
// expect: unique rows
// data: rows = 20000; weeks = 25; sites = rows // weeks; eggs = rng.poisson(1.5, (sites, weeks)); cover = rng.integers(0, 5, (sites, weeks)) / 4
// other: for (s in 1 : sites) eggs[s] ~ poisson_log(base + of_week + of_cover * cover[s]'); of_week ~ normal(0, 0.5); of_cover ~ std_normal();
data {
  int<lower=0> rows, sites, weeks;
  array[sites, weeks] int<lower=0> eggs;
  matrix[sites, weeks] cover;
}
parameters {
  real base, of_cover;
  vector[weeks] of_week;
}
model {
  of_week ~ normal(0, 0.5);
  of_cover ~ std_normal();
  for (s in 1 : sites) {
    for (w in 1 : weeks) {
      target += poisson_log_lupmf(eggs[s, w] | base + of_week[w] + of_cover * cover[s, w]);
    }
  }
}
