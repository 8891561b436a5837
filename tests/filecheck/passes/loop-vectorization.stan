// RUN: stan-opt --split-input-file -p loop-vectorization -t stan %s | filecheck %s

// A tilde, additions to the target, and an assignment to elements: whole statements. Where the density looks at a
// scalar that may be wrong, and the loop may have no iteration, a condition goes around.
data {
  int<lower=0> N;
  vector[N] x;
  vector[N] y;
}
parameters {
  real a;
  real b;
  real<lower=0> s;
}
model {
  vector[N] mu;
  for (n in 1:N) y[n] ~ normal(a + b * x[n], 1);
  for (n in 1:N) target += normal_lpdf(y[n] | a, s);
  for (n in 1:N) target += square(x[n]) * a;
  for (n in 1:N) mu[n] = a + b * x[n];
}
// CHECK:       vector[N] mu;
// CHECK-NEXT:  y ~ normal(a + b * x, 1);
// CHECK-NEXT:  if (N >= 1) {
// CHECK-NEXT:    target += normal_lpdf(y | a, s);
// CHECK-NEXT:  }
// CHECK-NEXT:  target += square(x) * a;
// CHECK-NEXT:  mu = a + b * x;
// CHECK-NEXT:  }

// -----
// The linear predictor of a hierarchical model, as brms writes it: gathers, and `mu` is assigned whole.
data {
  int<lower=1> N;
  int N_1;
  vector[N] Y;
  array[N] int J_1;
  vector[N] Z_1_1;
  array[N] real Z_1_2;
}
parameters {
  real Intercept;
  vector[N_1] r_1_1;
  vector[N_1] r_1_2;
  real<lower=0> sigma;
}
model {
  vector[N] mu = rep_vector(Intercept, N);
  for (n in 1:N) {
    mu[n] += r_1_1[J_1[n]] * Z_1_1[n] + r_1_2[J_1[n]] * Z_1_2[n];
    Y[n] ~ normal(mu[n], sigma);
  }
}
// CHECK:       vector[N] mu = rep_vector(Intercept, N);
// CHECK-NEXT:  mu = mu + (r_1_1[J_1] .* Z_1_1 + r_1_2[J_1] .* to_vector(Z_1_2));
// CHECK-NEXT:  Y ~ normal(mu, sigma);

// -----
// Rows times a vector, row vectors and arrays beside vectors, elementwise functions and quotients.
data {
  int N;
  int K;
  matrix[N, K] X;
  row_vector[N] r;
  array[N] int k;
}
parameters {
  vector[K] beta;
  row_vector[K] gamma;
}
model {
  row_vector[N] e;
  array[N] real f;
  matrix[N, K] A;
  for (n in 1:N) {
    e[n] = X[n] * beta + dot_product(X[n], gamma) - r[n];
    f[n] = exp(e[n]) / k[n] + 1 / X[n, 1] + X[n, 2] ^ 2;
    A[n] = r[n] * X[n];
    k[n] ~ poisson_log(e[n]);
  }
}
// CHECK:       if (N >= 1) {
// CHECK-NEXT:    e = (X * beta)' + (X * gamma')' - r;
// CHECK-NEXT:    f = to_array_1d(exp(e') ./ to_vector(k) + 1 ./ X[:, 1] + X[:, 2].^2);
// CHECK-NEXT:    A = diag_pre_multiply(r', X);
// CHECK-NEXT:    k ~ poisson_log(e);
// CHECK-NEXT:  }

// -----
// Where the loop does not run over all of a container: slices.
data {
  int N;
  int L;
  int U;
  vector[N] x;
  vector[N] y;
}
parameters {
  real b;
}
model {
  vector[N] mu = x;
  for (n in 2:N) y[n] ~ normal(b * y[n - 1], 1);
  for (n in L:U) mu[n + 1] = b * x[n];
  for (n in 1:4) target += mu[n] * b;
}
// CHECK:       y[2:N] ~ normal(b * y[1:N - 1], 1);
// CHECK-NEXT:  mu[L + 1:U + 1] = b * x[L:U];
// CHECK-NEXT:  target += mu[1:4] * b;

// -----
// A size that is reassigned after a declaration is not the bound that it looks like.
data {
  vector[3] y;
}
transformed data {
  int m = 2;
  vector[m] u = y[1:2];
  m = 1;
  int n1 = 3;
  vector[n1] v = y;
}
parameters {
  real b;
}
model {
  for (n in 1:m) target += u[n] * b;
  for (n in 1:n1) target += v[n] * b;
}
// CHECK:       target += u[1:m] * b;
// CHECK-NEXT:  target += v * b;

// -----
// Scalars that the body declares: written where they are read, or vectors if they are read more than once.
data {
  int<lower=1> N;
  vector[N] x;
  vector[N] y;
  array[N] int J;
}
parameters {
  real b;
  real<lower=0> s;
}
model {
  for (n in 1:N) {
    real m = b * x[n];
    y[n] ~ normal(m, s);
  }
  for (n in 1:N) {
    int j = J[n];
    real c = b * b;
    real m = c * x[j];
    m = m + c * y[j];
    y[n] ~ normal(m, s);
    target += exp(m);
  }
}
// CHECK:       y ~ normal(b * x, s);
// CHECK-NEXT:  array[size(J)] int j_sym1_ = J;
// CHECK-NEXT:  real c_sym2_ = b * b;
// CHECK-NEXT:  vector[num_elements(c_sym2_ * x[j_sym1_])] m_sym3_ = c_sym2_ * x[j_sym1_];
// CHECK-NEXT:  vector[num_elements(m_sym3_ + c_sym2_ * y[j_sym1_])] m_sym4_ = m_sym3_ + c_sym2_ * y[j_sym1_];
// CHECK-NEXT:  y ~ normal(m_sym4_, s);
// CHECK-NEXT:  target += exp(m_sym4_);

// -----
// Statements that cannot leave stay, the others go in front or behind; sums; what is the same each time.
data {
  int<lower=1> N;
  vector[N] x;
  array[N] int b;
}
parameters {
  real p;
}
model {
  vector[N] u;
  vector[N] v;
  real t = 0;
  for (n in 1:N) {
    u[n] = p * x[n];
    if (b[n]) {
      u[n] = 1;
    }
    v[n] = u[n] * p;
    t += v[n];
    target += -square(p);
  }
}
// CHECK:       real t = 0;
// CHECK-NEXT:  u = p * x;
// CHECK-NEXT:  target += N * -square(p);
// CHECK-NEXT:  for (n in 1:N) {
// CHECK-NEXT:    if (b[n]) {
// CHECK-NEXT:      u[n] = 1;
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK-NEXT:  v = u * p;
// CHECK-NEXT:  t = t + sum(v);
// CHECK-NEXT:  }

// -----
// Nested loops: the inner one, and the outer one too where rows make a matrix.
data {
  int<lower=1> N;
  int<lower=1> M;
  matrix[N, M] W;
  array[N] vector[M] Y;
}
parameters {
  vector[M] z;
  real p;
}
model {
  matrix[N, M] A;
  for (i in 1:N) for (j in 1:M) A[i, j] = p * W[i, j];
  for (i in 1:N) for (j in 1:M) Y[i, j] ~ normal(z[j], 1);
  for (i in 1:N) Y[i] ~ multi_normal(z, diag_matrix(z));
}
// CHECK:       matrix[N, M] A = p * W;
// CHECK-NEXT:  for (i in 1:N) {
// CHECK-NEXT:    Y[i] ~ normal(z, 1);
// CHECK-NEXT:  }
// CHECK-NEXT:  Y ~ multi_normal(z, diag_matrix(z));

// -----
// Outside of transformed parameters and model errors keep their text and order: only what cannot throw.
functions {
  real f(vector v, real m) {
    int n1 = size(v);
    vector[n1] u;
    for (i in 1:n1) u[i] = v[i] * m;
    return sum(u);
  }
}
data {
  int N;
  vector[N] x;
  array[N] int J;
}
transformed data {
  vector[N] a;
  vector[N] b;
  for (n in 1:N) a[n] = exp(x[n]);
  for (n in 1:N) b[n] = x[J[n]];
}
generated quantities {
  vector[N] c;
  vector[N] d;
  for (n in 1:N) {
    c[n] = 2 * x[n];
    d[n] = normal_rng(c[n], 1);
  }
}
// CHECK:       vector[n1] u = v * m;
// CHECK:       a = exp(x);
// CHECK-NEXT:  for (n in 1:N) {
// CHECK-NEXT:    b[n] = x[J[n]];
// CHECK-NEXT:  }
// CHECK:       c = 2 * x;
// CHECK-NEXT:  for (n in 1:N) {
// CHECK-NEXT:    d[n] = normal_rng(c[n], 1);
// CHECK-NEXT:  }

// -----
// A short loop inside of another: what is whole can be fused and shared by the passes that follow.
data {
  int<lower=0> T;
  vector[T] y;
}
parameters {
  vector[3] a;
}
model {
  for (t in 1:T) {
    vector[3] b;
    for (k in 1:3) {
      b[k] = exp(a[k]) * y[t];
    }
    target += log_sum_exp(b);
  }
}
// CHECK:       for (t in 1:T) {
// CHECK-NEXT:    vector[3] b = exp(a) * y[t];
// CHECK-NEXT:    target += log_sum_exp(b);

// -----
// Rows that surely have the size of those of the variable need no iteration to be right; others may fail.
data {
  int<lower=0> J;
  int<lower=0> T;
  int<lower=0> U;
  matrix[J, T] s;
  matrix[J, U] v;
}
parameters {
  real<lower=0> a;
}
model {
  matrix[J, T] p;
  matrix[J, T] q;
  for (j in 1:J) {
    for (t in 1:T) {
      p[j, t] = a ^ s[j, t] + a;
    }
  }
  for (j in 1:J) {
    q[j] = s[j] .* v[j];
  }
  target += sum(p) + sum(q);
}
// CHECK:       matrix[J, T] q;
// CHECK-NEXT:  p = a.^s + a;
// CHECK-NEXT:  if (J >= 1) {
// CHECK-NEXT:    q = s .* v;
// CHECK-NEXT:  }
