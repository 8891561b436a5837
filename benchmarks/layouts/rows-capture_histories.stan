// expect: unique rows
// data: birds = 3000; years = 6; caught = rng.integers(0, 2, (birds, years))
// other: for (b in 1 : birds) { vector[2] of = [log(alive), log1m(alive) - 3]'; for (t in 1 : years) of[1] += bernoulli_lpmf(caught[b, t] | seen[t]); target += log_sum_exp(of); }
data {
  int<lower=0> birds;
  int<lower=2> years;
  array[birds, years] int<lower=0, upper=1> caught;
}
parameters {
  real<lower=0, upper=1> alive;
  vector<lower=0, upper=1>[years] seen;
}
model {
  for (b in 1 : birds) {
    real history = 0;
    for (t in 1 : years) {
      history += caught[b, t] ? log(seen[t]) : log1m(seen[t]);
    }
    target += log_sum_exp(log(alive) + history, log1m(alive) - 3);
  }
}
