// Rows in any order: hardly one adds to what the one before added to.
// expect: none
// data: n = 15000; A = 12; B = 9; a = index(n, A); b = index(n, B); t = normal(n); w = normal(n)
data {
  int n;
  int A;
  int B;
  array[n] int<lower=1, upper=A> a;
  array[n] int<lower=1, upper=B> b;
  vector[n] t;
  vector[n] w;
}
parameters {
  vector[A] u;
  vector[B] v;
  matrix[A, B] uv;
  real<lower=0> s;
  real<lower=1> nu;
  real k;
}
model {
  to_vector(uv) ~ normal(0, 1);
  u ~ normal(0, 1);
  v ~ normal(0, 1);
  s ~ exponential(1);
  nu ~ gamma(2, 0.1);
  for (i in 1 : n) {
    target += student_t_lpdf(t[i] | nu, u[a[i]] + v[b[i]] + uv[a[i], b[i]] + k * w[i], s);
  }
}
