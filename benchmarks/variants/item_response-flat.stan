// posterior: irt_2pl-irt_2pl
data { int I; int J; array[I, J] int<lower=0, upper=1> y; }
parameters { real<lower=0> st; vector[J] theta; real<lower=0> sa; vector<lower=0>[I] a; real mb; real<lower=0> sb; vector[I] b; }
model {
  vector[I * J] ll;
  for (i in 1:I) for (j in 1:J) ll[(i - 1) * J + j] = bernoulli_logit_lpmf(y[i, j] | a[i] * (theta[j] - b[i]));
  target += sum(ll);
  st ~ cauchy(0, 2); theta ~ normal(0, st); sa ~ cauchy(0, 2); a ~ lognormal(0, sa); mb ~ normal(0, 5); sb ~ cauchy(0, 2); b ~ normal(mb, sb);
}
