// Only those who were paid a bonus have an effect of their branch, and its slope; others have no branch.
// expect: reduced rows
// data: N = 14000; B = 70; paid = bits(N); branch = np.where(paid, index(N, B), 0); years = normal(N); sold = normal(N); count_years = 1
// other: of_branch ~ normal(0, spread); slope ~ normal(0, 1); spread ~ exponential(1); noise ~ exponential(1); for (n in 1 : N) sold[n] ~ normal(base + (paid[n] ? of_branch[branch[n]] + slope[branch[n]] * years[n] : 0) + (count_years ? of_years * years[n] : 0), noise);
data {
  int<lower=0> N, B;
  array[N] int<lower=0, upper=1> paid;
  array[N] int<lower=0, upper=B> branch;
  vector[N] years, sold;
  int<lower=0, upper=1> count_years;
}
parameters {
  real base, of_years;
  vector[B] of_branch, slope;
  real<lower=0> spread, noise;
}
model {
  of_branch ~ normal(0, spread);
  slope ~ normal(0, 1);
  spread ~ exponential(1);
  noise ~ exponential(1);
  for (n in 1 : N) {
    real expected = base;
    if (paid[n]) {
      expected += of_branch[branch[n]];
      expected += slope[branch[n]] * years[n];
    }
    if (count_years) expected += of_years * years[n];
    sold[n] ~ normal(expected, noise);
  }
}
