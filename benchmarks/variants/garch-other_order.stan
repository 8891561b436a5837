// posterior: garch-garch11
// names of data: {"T": "n", "y": "returns", "sigma1": "first"}
data {
  int n;
  vector[n] returns;
  real<lower=0> first;
}
parameters {
  real level;
  real<lower=0> base;
  real<lower=0, upper=1> shock;
  real<lower=0, upper=(1 - shock)> memory;
}
model {
  vector[n] scale;
  scale[1] = first;
  for (t in 2:n)
    scale[t] = sqrt(memory * scale[t - 1] ^ 2 + shock * (returns[t - 1] - level) ^ 2 + base);
  returns ~ normal(level, scale);
}
