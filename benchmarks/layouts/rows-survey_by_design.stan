// Answers of a survey by a matrix of indicators, with an effect of the region that a loop adds.
// expect: unique rows
// data: people = 12000; terms = 5; regions = 6; D = np.column_stack([np.ones(people), rng.integers(0, 2, (people, terms - 1))]) * 1.0; region = index(people, regions); voted = bits(people)
// other: for (p in 1 : people) voted[p] ~ bernoulli_logit(D[p] * weight + spread * lean[region[p]]); weight ~ normal(0, 2); lean ~ std_normal(); spread ~ exponential(1);
data {
  int<lower=0> people;
  int<lower=1> terms;
  int<lower=1> regions;
  matrix[people, terms] D;
  array[people] int<lower=1, upper=regions> region;
  array[people] int<lower=0, upper=1> voted;
}
parameters {
  vector[terms] weight;
  vector[regions] lean;
  real<lower=0> spread;
}
model {
  vector[people] score = D * weight;
  for (p in 1 : people) {
    score[p] += spread * lean[region[p]];
  }
  voted ~ bernoulli_logit(score);
  weight ~ normal(0, 2);
  lean ~ std_normal();
  spread ~ exponential(1);
}
