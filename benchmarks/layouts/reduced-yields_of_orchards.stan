// A function is handed parts of the rows; what trees have is added ahead of it, orchard by orchard, to a part of the means.
// expect: reduced rows
// data: N = 12000; J = 60; per = N // J; first = 1 + per * np.arange(J); last = per * np.arange(1, J + 1); sort = index(N, 12); age = normal(N); yield_of = normal(N); tree = np.arange(1, N + 1)
// bind: J = N // 50
// other: orchard ~ normal(0, spread); kind ~ normal(0, 1); spread ~ exponential(1); noise ~ exponential(1); vector[N] mu; for (j in 1 : J) mu[first[j] : last[j]] = rep_vector(orchard[j], per); yield_of ~ normal(mu + kind[sort] + by_age * age, noise);
functions {
  real orchards_lpmf(array[] int tree, int start, int end, data vector yield_of, data vector age, data array[] int sort,
                     data array[] int first, data array[] int last, vector orchard, vector kind, real by_age, real noise) {
    int n = end - start + 1;
    vector[n] mu = rep_vector(0, n);
    for (k in 1 : n) {
      int at = k + start - 1;
      mu[k] += kind[sort[at]];
    }
    mu += by_age * age[start : end];
    for (j in 1 : size(orchard)) mu[first[j] : last[j]] += orchard[j];
    return normal_lpdf(yield_of[start : end] | mu, noise);
  }
}
data {
  int<lower=1> N, J, per;
  array[J] int<lower=1> first, last;
  array[N] int<lower=1, upper=12> sort;
  vector[N] age, yield_of;
  array[N] int tree;
}
parameters {
  vector[J] orchard;
  vector[12] kind;
  real by_age;
  real<lower=0> spread, noise;
}
model {
  orchard ~ normal(0, spread);
  kind ~ normal(0, 1);
  spread ~ exponential(1);
  noise ~ exponential(1);
  target += orchards_lpmf(tree | 1, N, yield_of, age, sort, first, last, orchard, kind, by_age, noise);
}
