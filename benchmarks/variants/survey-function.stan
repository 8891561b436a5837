// posterior: Survey_data-Survey_model
functions {
  real number(array[] int k, int n, int nmax, real theta) {
    return n < max(k) ? negative_infinity() : -log(nmax) + binomial_lpmf(k | n, theta);
  }
}
data {
  int nmax;
  int m;
  array[m] int<lower=0, upper=nmax> k;
}
parameters {
  real<lower=0, upper=1> theta;
}
transformed parameters {
  vector[nmax] lp;
  for (n in 1:nmax) lp[n] = number(k, n, nmax, theta);
}
model {
  target += log_sum_exp(lp);
}
