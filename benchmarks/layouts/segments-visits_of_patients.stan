// Rows in the order of patients, each with two coefficients: a row adds to what the one before added to.
// expect: rows by index
// data: visits = 30000; people = 150; who = np.sort(index(visits, people)); week = normal(visits); relapse = bits(visits)
// other: relapse ~ bernoulli_logit(level[who] + trend[who] .* week); spread ~ exponential(1); level ~ normal(0, spread); trend ~ std_normal();
// bind: people = max(1, visits // 200)
data {
  int<lower=0> visits;
  int<lower=1> people;
  array[visits] int<lower=1, upper=people> who;
  vector[visits] week;
  array[visits] int<lower=0, upper=1> relapse;
}
parameters {
  vector[people] level;
  vector[people] trend;
  real<lower=0> spread;
}
model {
  spread ~ exponential(1);
  level ~ normal(0, spread);
  trend ~ std_normal();
  for (v in 1 : visits) {
    relapse[v] ~ bernoulli_logit(level[who[v]] + trend[who[v]] * week[v]);
  }
}
