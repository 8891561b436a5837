// posterior: Mt_data-Mt_model
// names of data: {"M": "animals", "T": "occasions", "y": "captured"}
data {
  int<lower=0> animals;
  int<lower=0> occasions;
  array[animals, occasions] int<lower=0, upper=1> captured;
}
transformed data {
  array[animals] int total;
  for (a in 1:animals) total[a] = sum(captured[a]);
}
parameters {
  vector<lower=0, upper=1>[occasions] detection;
  real<lower=0, upper=1> included;
}
model {
  for (a in 1:animals) {
    if (total[a] == 0)
      target += log_sum_exp(bernoulli_lpmf(0 | included), bernoulli_lpmf(captured[a] | detection) + bernoulli_lpmf(1 | included));
    else
      target += bernoulli_lpmf(captured[a] | detection) + log(included);
  }
}
