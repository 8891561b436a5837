// Rows in any order: hardly one waits for the one before, but three additions of a row are one sum for each cell.
// expect: rows by index
// data: n = 15000; A = 12; B = 9; a = index(n, A); b = index(n, B); t = normal(n); w = normal(n)
// other: for (i in 1 : n) t[i] ~ student_t(nu, k * w[i] + uv[a[i], b[i]] + v[b[i]] + u[a[i]], s); nu ~ gamma(2, 0.1); s ~ exponential(1); to_vector(uv) ~ std_normal(); u ~ std_normal(); v ~ std_normal();
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
