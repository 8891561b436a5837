// posterior: arK-arK
data { int K; int T; vector[T] y; }
parameters { real alpha; vector[K] beta; real<lower=0> sigma; }
model { vector[T - K] mu = rep_vector(alpha, T - K); for (k in 1:K) mu += beta[k] * y[K + 1 - k:T - k]; y[K + 1:T] ~ normal(mu, sigma); alpha ~ normal(0, 10); beta ~ normal(0, 10); sigma ~ cauchy(0, 2.5); }
