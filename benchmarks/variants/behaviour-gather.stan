// posterior: Mb_data-Mb_model
data {
  int M;
  int T;
  array[M, T] int<lower=0, upper=1> y;
}
transformed data {
  array[M] int s;
  array[M, T] int before = rep_array(1, M, T);
  for (i in 1:M) {
    s[i] = sum(y[i]);
    for (t in 2:T) before[i, t] = 1 + y[i, t - 1];
  }
}
parameters {
  real<lower=0, upper=1> omega;
  real<lower=0, upper=1> p;
  real<lower=0, upper=1> c;
}
model {
  array[2] real q = {p, c};
  omega ~ beta(1, 1);
  for (i in 1:M) {
    real l = 0;
    for (t in 1:T) l += y[i, t] == 1 ? log(q[before[i, t]]) : log1m(q[before[i, t]]);
    target += s[i] > 0 ? log(omega) + l : log_sum_exp(log1m(omega), log(omega) + l);
  }
}
