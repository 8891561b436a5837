// posterior: garch-garch11
data { int T; array[T] real y; real<lower=0> sigma1; }
parameters { real m; real<lower=0> w; real<lower=0, upper=1> a; real<lower=0, upper=(1 - a)> b; }
model { vector[T] v; vector[T] e = to_vector(y) - m; v[1] = sigma1^2; for (t in 2:T) v[t] = w + a * e[t - 1]^2 + b * v[t - 1]; e ~ normal(0, sqrt(v)); m ~ normal(0, 10); }
