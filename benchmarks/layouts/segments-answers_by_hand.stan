// Item response with discrimination; the other form writes the likelihood, whose terms ints alone decide.
// expect: rows by index
// data: N = 9000; items = 25; pupils = 300; item = index(N, items); pupil = np.sort(index(N, pupils)); right = bits(N)
// other: ability ~ normal(0, 1); difficulty ~ normal(0, 1); discrimination ~ lognormal(0, 0.5); for (n in 1 : N) { real eta = discrimination[item[n]] * (ability[pupil[n]] - difficulty[item[n]]); target += right[n] * eta - log1p_exp(eta); }
data {
  int<lower=0> N, items, pupils;
  array[N] int<lower=1, upper=items> item;
  array[N] int<lower=1, upper=pupils> pupil;
  array[N] int<lower=0, upper=1> right;
}
parameters {
  vector[pupils] ability;
  vector[items] difficulty;
  vector<lower=0>[items] discrimination;
}
model {
  ability ~ normal(0, 1);
  difficulty ~ normal(0, 1);
  discrimination ~ lognormal(0, 0.5);
  right ~ bernoulli_logit(discrimination[item] .* (ability[pupil] - difficulty[item]));
}
