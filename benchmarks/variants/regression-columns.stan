// posterior: sblrc-blr
data { int N; int D; matrix[N, D] X; vector[N] y; }
parameters { vector[D] beta; real<lower=0> sigma; }
model { vector[N] mu = rep_vector(0, N); for (d in 1:D) mu += X[, d] * beta[d]; y ~ normal(mu, sigma); beta ~ normal(0, 10); sigma ~ normal(0, 10); }
