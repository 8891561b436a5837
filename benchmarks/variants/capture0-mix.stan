// posterior: M0_data-M0_model
data { int M; int T; array[M, T] int<lower=0, upper=1> y; }
parameters { real<lower=0, upper=1> omega; real<lower=0, upper=1> p; }
model {
  for (i in 1:M) {
    int s = sum(y[i]);
    if (s == 0) target += log_mix(omega, binomial_lpmf(0 | T, p), 0);
    else { 1 ~ bernoulli(omega); s ~ binomial(T, p); }
  }
  p ~ uniform(0, 1);
}
