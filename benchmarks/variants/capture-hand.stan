// posterior: Mt_data-Mt_model
data {
  int M;
  int T;
  array[M, T] int<lower=0, upper=1> y;
}
transformed data {
  array[M] int s;
  for (i in 1:M) {
    s[i] = sum(y[i]);
  }
}
parameters {
  real<lower=0, upper=1> omega;
  vector<lower=0, upper=1>[T] p;
}
model {
  vector[T] lp = log(p);
  vector[T] lq = log1m(p);
  for (i in 1:M) {
    real l = log(omega);
    for (j in 1:T) {
      l = l + (y[i, j] == 1 ? lp[j] : lq[j]);
    }
    target += s[i] > 0 ? l : log_sum_exp(l, log1m(omega));
  }
}
