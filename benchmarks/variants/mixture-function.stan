// posterior: low_dim_gauss_mix-low_dim_gauss_mix
functions { real two(real y, real m1, real s1, real m2, real s2, real t) { return log_sum_exp(log(t) - log(s1) - 0.5 * square((y - m1) / s1), log1m(t) - log(s2) - 0.5 * square((y - m2) / s2)); } }
data { int N; vector[N] y; }
parameters { ordered[2] m; array[2] real<lower=0> s; real<lower=0, upper=1> t; }
model { for (n in 1:N) target += two(y[n], m[1], s[1], m[2], s[2], t); s ~ normal(0, 2); m ~ normal(0, 2); t ~ beta(5, 5); }
