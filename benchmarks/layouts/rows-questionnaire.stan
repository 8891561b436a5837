// expect: unique rows
// data: people = 6000; items = 4; answer = rng.integers(1, 4, (people, items)); cls = index(people, 2)
// other: for (i in 1 : people) for (j in 1 : items) target += ordered_logistic_lpmf(answer[i, j] | j * gain * shift, cut[cls[i]]); cut[1] ~ normal(0, 3); cut[2] ~ normal(0, 3); gain ~ exponential(1);
data {
  int<lower=0> people;
  int<lower=1> items;
  array[people, items] int<lower=1, upper=3> answer;
  array[people] int<lower=1, upper=2> cls;
}
parameters {
  array[2] ordered[2] cut;
  real<lower=0> gain;
  real shift;
}
model {
  for (k in 1 : 2) cut[k] ~ normal(0, 3);
  gain ~ exponential(1);
  for (i in 1 : people) {
    for (j in 1 : items) {
      answer[i, j] ~ ordered_logistic(gain * shift * j, cut[cls[i]]);
    }
  }
}
