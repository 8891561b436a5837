// expect: unique rows
// data: visits = 20000; sites = 250; site = index(visits, sites); caught = counts(visits, 3); effort = normal(visits)
// other: caught ~ neg_binomial_2_log(level[site] + trend * effort, phi); phi ~ exponential(1); trend ~ normal(0, 1); level ~ normal(0, 2);
data {
  int<lower=0> visits;
  int<lower=1> sites;
  array[visits] int<lower=1, upper=sites> site;
  array[visits] int<lower=0> caught;
  vector[visits] effort;
}
parameters {
  vector[sites] level;
  real trend;
  real<lower=0> phi;
}
model {
  phi ~ exponential(1);
  trend ~ normal(0, 1);
  level ~ normal(0, 2);
  for (v in 1 : visits) {
    caught[v] ~ neg_binomial_2_log(level[site[v]] + trend * effort[v], phi);
  }
}
