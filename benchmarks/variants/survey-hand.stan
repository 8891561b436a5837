// posterior: Survey_data-Survey_model
data { int nmax; int m; array[m] int<lower=0, upper=nmax> k; }
parameters { real<lower=0, upper=1> theta; }
model { vector[nmax - max(k) + 1] lp; for (n in max(k):nmax) { real l = -log(nmax); for (i in 1:m) l += lchoose(n, k[i]) + k[i] * log(theta) + (n - k[i]) * log1m(theta); lp[n - max(k) + 1] = l; } target += log_sum_exp(lp); }
