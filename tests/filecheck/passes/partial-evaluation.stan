// RUN: stan-opt --split-input-file --verify-each -p partial-evaluation -t stan %s | filecheck %s

// The documented example.
model {
  real a = 1 + 1;
  real b = log(1 - a);
  real c = a + b * 5;
}
// CHECK:       real a = 2;
// CHECK-NEXT:  real b = log1m(a);
// CHECK-NEXT:  real c = fma(b, 5, a);

// -----

// Whatever order rules are tried in: `log(fma(x, y, 1))` is not as good.
parameters {
  real x;
  real y;
}
model {
  target += log(1 + x * y);
  target += log(x * y + 1);
  target += log(1 - exp(x)) + log(exp(x) + 1);
  target += log(exp(x) + exp(y)) - log(exp(x) - exp(y));
  target += 1 / sqrt(x) + x ^ 2 + x ^ 0.5 + 2 ^ x;
}
// CHECK:       target += log1p(x * y);
// CHECK-NEXT:  target += log1p(x * y);
// CHECK-NEXT:  target += log1m_exp(x) + log1p_exp(x);
// CHECK-NEXT:  target += log_sum_exp(x, y) - log_diff_exp(x, y);
// CHECK-NEXT:  target += inv_sqrt(x) + square(x) + sqrt(x) + exp2(x);

// -----

// Operators with `'`, and a mixture.
data {
  matrix[3, 3] A;
}
parameters {
  matrix[3, 3] B;
  vector[3] v;
  cholesky_factor_corr[3] L;
  real<lower=0, upper=1> t;
}
model {
  target += sum(B' * A * B) + sum(B' * B) + sum(B * B');
  target += v' * A * v + v' * v + sum(L * L');
  target += sum(diag_matrix(v) * A * diag_matrix(v)) + trace(B' * A * B);
  target += log_sum_exp(log(t) + v[1], log1m(t) + v[2]) + log_sum_exp(log(1 - t) + v[1], log(t) + v[2]);
}
// CHECK:       target += sum(quad_form(A, B)) + sum(crossprod(B)) + sum(tcrossprod(B));
// CHECK-NEXT:  target += quad_form(A, v) + dot_self(v) + sum(multiply_lower_tri_self_transpose(L));
// CHECK-NEXT:  target += sum(quad_form_diag(A, v)) + trace_quad_form(A, B);
// CHECK-NEXT:  target += log_mix(t, v[1], v[2]) + log_mix(t, v[2], v[1]);

// -----

// Literals: ints have 32 bits; what is not finite, and an int by 0, stays. Right sides count where they are evaluated.
data {
  int n;
  array[3] int k;
  vector[3] v;
  matrix[3, 3] m;
}
generated quantities {
  int a = 2147483647 + 1;
  int b = 7 %/% 2 - 7 % 4 + (3 < 4);
  real c = 1.0 / 3 + 0.0 / 0.0;
  real d = 1e308 * 10.0;
  int e = n == 0 ? 0 : 1 %/% 0;
  int f = 0 && n;
  int g = 1 || n;
  int h = 1 && n;
  int i = 1 && n > 2;
  int j = 2 - 2 ? k[n] : k[1];
  int l = (n + 1) - 1;
  int o = (k[n], n).2;
  real p = n * log(v[1]);
  vector[3] q = v[:] * 1;
  row_vector[3] r = m[1, :] + m[:, :][2];
  int s = !(n == 3);
}
// CHECK:       a = -2147483647 - 1;
// CHECK-NEXT:  b = 1;
// CHECK-NEXT:  c = 0.3333333333333333 + 0 / 0.0;
// CHECK-NEXT:  d = 1e+308 * 10;
// CHECK-NEXT:  e = n == 0 ? 0 : 1 %/% 0;
// CHECK-NEXT:  f = 0;
// CHECK-NEXT:  g = 1;
// CHECK-NEXT:  h = n != 0;
// CHECK-NEXT:  i = n > 2;
// CHECK-NEXT:  j = k[1];
// CHECK-NEXT:  l = n;
// CHECK:       o = n;
// CHECK-NEXT:  p = n * log(v[1]);
// CHECK-NEXT:  q = v;
// CHECK-NEXT:  r = m[1] + m[2];
// CHECK-NEXT:  s = n != 3;

// -----

// Draws stay what they are, each made once; equal expressions that draw are not equal values.
generated quantities {
  real a = dot_product(to_vector(normal_rng({0, 0}, 1)), to_vector(normal_rng({0, 0}, 1)));
  vector[2] v = to_vector(normal_rng({0, 0}, 1));
  real b = dot_product(v, v);
  real c = (normal_rng(0, 1), 1.5).2;
}
// CHECK:       a = dot_product(to_vector(normal_rng({0, 0}, 1)), to_vector(normal_rng({0, 0}, 1)));
// CHECK:       b = dot_self(v);
// CHECK:       normal_rng(0, 1);
// CHECK:       c = 1.5;

// -----

// No rule for these: the result would be another number, of another type, or without an error that there was.
data {
  array[20] int v;
  array[3] int k;
  int i;
  matrix[2, 2] A;
  real x;
}
generated quantities {
  int a = i * i + 3;
  int b = v[i * i + 1];
  int c = v[1:2][i];
  int d = v[k][i];
  matrix[2, 2] e = A * log(A);
  real g = x - x;
  real h = x * 0;
  real j = exp(log(x));
  real l = x * log(x);
  int m = i %/% 0;
  real n = bernoulli_rng(inv_logit(x));
}
// CHECK:       int a = i * i + 3;
// CHECK-NEXT:  int b = v[i * i + 1];
// CHECK-NEXT:  int c = v[1:2][i];
// CHECK-NEXT:  int d = v[k][i];
// CHECK-NEXT:  matrix[2, 2] e = A * log(A);
// CHECK-NEXT:  real g = x - x;
// CHECK-NEXT:  real h = x * 0;
// CHECK-NEXT:  real j = exp(log(x));
// CHECK-NEXT:  real l = x * log(x);
// CHECK-NEXT:  int m = i %/% 0;
// CHECK-NEXT:  real n = bernoulli_rng(inv_logit(x));


// -----
// Neutral elements, and functions where their value is exact.
data {
  real x;
  int n;
}
generated quantities {
  real a = x + 0;
  real b = log(1) + exp(0) + sqrt(4) + pow(2, 3);
  real c = x * x + 0;
  real d = exp(2);
  real e = x - log(1);
}
// CHECK:       a = x;
// CHECK-NEXT:  b = 11;
// CHECK-NEXT:  c = square(x);
// CHECK-NEXT:  d = exp(2);
// CHECK-NEXT:  e = x;

// -----

// Logarithms of what multiplies a rate are taken once, of data alone.
data {
  int N;
  matrix[N, 2] X;
  vector[N] exposure;
  array[N] int y;
}
transformed data {
  vector[N] share = exposure / sum(exposure);
}
parameters {
  real a;
  vector[2] b;
  vector<lower=0>[N] scale;
}
model {
  y ~ poisson(exposure .* exp(a + X * b));
  for (n in 1 : N) {
    y[n] ~ poisson(exp(a * X[n, 1]) * share[n]);
  }
  y ~ poisson(scale .* exp(a + X * b));
}
// CHECK:       y ~ poisson_log_glm(X, a + log(exposure), b);
// CHECK:         y[n] ~ poisson_log(fma(a, X[n, 1], log(share[n])));
// CHECK:       y ~ poisson(scale .* exp(a + X * b));

// -----

// Logistic functions that are written out, in densities, too; reciprocals of exponentials.
data { int N; vector[N] x; array[N] int y; }
parameters { real a, b; real<lower=0> s; }
model {
  y ~ bernoulli(1 ./ (1 + exp(-(a + b * x))));
  for (n in 1:N) y[n] ~ bernoulli(1 / (1 + exp(-a - b * x[n])));
  for (n in 1:N) { real eta = a + b * x[n]; y[n] ~ bernoulli(exp(eta) / (1 + exp(eta))); }
  x ~ gamma(s, s * inv(exp(a + b * x)));
  x ~ exponential(1 ./ exp(a + b * x));
}
// CHECK:       y ~ bernoulli_logit(fma(b, x, a));
// CHECK:         y[n] ~ bernoulli_logit(-(-a - b * x[n]));
// CHECK:         y[n] ~ bernoulli_logit(eta);
// CHECK:       x ~ gamma(s, s * exp(-fma(b, x, a)));
// CHECK:       x ~ exponential(exp(-fma(b, x, a)));
