// Firms and years in a matrix whose means are filled year by year, with one density for all.
// expect: reduced rows
// data: rows = 18000; years = 30; firms = rows // years; output = normal(firms, years); labour = normal(firms, years); capital = normal(firms, years)
// other: for (f in 1 : firms) for (t in 1 : years) output[f, t] ~ normal(of_firm[f] + share * labour[f, t] + (1 - share) * capital[f, t], noise); of_firm ~ normal(mean_firm, spread); spread ~ exponential(1); noise ~ exponential(1);
data {
  int<lower=0> rows, firms, years;
  matrix[firms, years] output, labour, capital;
}
parameters {
  real mean_firm;
  vector[firms] of_firm;
  real<lower=0, upper=1> share;
  real<lower=0> spread, noise;
}
model {
  spread ~ exponential(1);
  noise ~ exponential(1);
  of_firm ~ normal(mean_firm, spread);
  matrix[firms, years] mu;
  for (t in 1 : years) mu[ : , t] = of_firm + share * labour[ : , t] + (1 - share) * capital[ : , t];
  to_vector(output) ~ normal(to_vector(mu), noise);
}
