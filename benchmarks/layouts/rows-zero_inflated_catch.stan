// expect: unique rows
// data: hauls = 15000; fish = counts(hauls, 1.5) * bits(hauls); gear = index(hauls, 3); night = bits(hauls)
// other: rate ~ normal(0, 1); dark ~ normal(0, 1); for (h in 1 : hauls) target += fish[h] == 0 ? log_sum_exp(log(empty), log1m(empty) - exp(rate[gear[h]] + dark * night[h])) : log1m(empty) + poisson_log_lpmf(fish[h] | rate[gear[h]] + dark * night[h]);
data {
  int<lower=0> hauls;
  array[hauls] int<lower=0> fish;
  array[hauls] int<lower=1, upper=3> gear;
  array[hauls] int<lower=0, upper=1> night;
}
parameters {
  vector[3] rate;
  real dark;
  real<lower=0, upper=1> empty;
}
model {
  rate ~ normal(0, 1);
  dark ~ normal(0, 1);
  for (h in 1 : hauls) {
    real eta = rate[gear[h]] + dark * night[h];
    if (fish[h] == 0) {
      target += log_sum_exp(log(empty), log1m(empty) + poisson_log_lpmf(0 | eta));
    } else {
      target += log1m(empty) + poisson_log_lpmf(fish[h] | eta);
    }
  }
}
