// posterior: normal_5-normal_mixture_k
data { int K; int N; vector[N] y; }
parameters { simplex[K] w; vector[K] m; vector<lower=0, upper=10>[K] s; }
model { vector[K] lw = log(w); for (i in 1:N) { vector[K] lp = lw; for (j in 1:K) lp[j] += normal_lpdf(y[i] | m[j], s[j]); target += log_sum_exp(lp); } m ~ normal(0, 10); s ~ normal(0, 5); }
