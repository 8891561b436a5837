// The day decides, and weekdays take turns.
// expect: none
// data: days = 4000; sick = counts(days, 3); weekday = index(days, 7)
data {
  int<lower=0> days;
  array[days] int<lower=0> sick;
  array[days] int<lower=1, upper=7> weekday;
}
parameters {
  vector[7] level;
  real trend;
}
model {
  level ~ normal(0, 1);
  for (d in 1 : days) {
    sick[d] ~ poisson_log(level[weekday[d]] + trend * d / days);
  }
}
