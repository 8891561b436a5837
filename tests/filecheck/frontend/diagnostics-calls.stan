// RUN: stan-opt %s --split-input-file --verify-diagnostics

// Arguments of calls and of `~`, and where special functions may be called.
data { matrix[3, 3] m; vector[3] v; real x; }
parameters { real p; }
model {
  print(normal_lpdf(x | 0));  // expected-error {{'normal_lpdf' takes 3 arguments, but 2 are given}}
  print(normal_lpdf(m | 0, 1));  // expected-error {{argument 1 is a matrix, not a real}}
  print(normal_lpdf(x, 0, 1));  // expected-error {{must be followed by '|', not by a comma}}
  print(pow(x | 2));  // expected-error {{is not a probability function and takes no '|'}}
  print(quantile({p}, 0.5));  // expected-error {{argument 1 of 'quantile' must be data}}
  print(normal_rng(0, 1));  // expected-error {{random numbers can be drawn only in}}
  exp(x);  // expected-error {{the result of 'exp', a real, is not used}}
  x ~ normal(0);  // expected-error {{'normal_lpdf' takes 3 arguments, but 2 are given}}
  x ~ normal_lpdf(0, 1);  // expected-error {{'~' takes the name of a distribution without '_lpdf'}}
  x ~ normal(0, 1) T[v, ];  // expected-error {{the bound of a truncation must be an int or a real}}
  v ~ multi_normal(v, m) T[0, ];  // expected-error {{'multi_normal' cannot be truncated here}}
}

// -----
functions {
  void f() { }
  real g(int a, real b) { return 1; }
  real g(real a, int b) { return 2; }
}
model {
  print(f());  // expected-error {{'f' returns nothing and cannot be used as a value}}
  print(g(1, 2));  // expected-error {{it is ambiguous which 'g' takes (int, int)}}
}

// -----
// Callbacks: exact types at the front, any further arguments after.
functions {
  vector rhs(real t, vector y, real k) { return -k * y; }
  real wrong(real t, vector y) { return t; }
  vector drawing_rng(real t, vector y) { return y; }
}
data { vector[1] y0; array[2] real ts; }
parameters { real k; }
model {
  array[2] vector[1] y = ode_rk45(rhs, y0, 0, ts, k);
  y = ode_rk45(rhs, y0, 0, ts);  // expected-error {{it takes 5 arguments, but 4 are given}}
  y = ode_rk45(rhs, y0, 0, ts, y0);  // expected-error {{argument 5 must be a real, but this is a vector}}
  y = ode_rk45_tol(rhs, y0, 0, ts, k, 1e-6, 10, k);  // expected-error {{argument 5 must be data}}
  y = ode_rk45(wrong, y0, 0, ts);  // expected-error {{the function must return a vector, but 'wrong' returns a real}}
  y = ode_rk45(drawing_rng, y0, 0, ts);  // expected-error {{cannot be passed, because its name ends in _rng}}
  y = ode_rk45(exp, y0, 0, ts);  // expected-error {{'exp' is a library function}}
  y = ode_rk45(y0, y0, 0, ts);  // expected-error {{must be the name of a function}}
  target += reduce_sum(wrong, k, 1);  // expected-error {{the sliced argument must be an array, but this is a real}}
  y = ode_rk45(rhs, y0, 0,  // expected-error {{argument 5 must be a real, but this is a vector}}
               ts,
               y0);
}

// -----
generated quantities {
  real a = normal_lupdf(1 | 0, 1);  // expected-error {{drops constants and can be used only in the model block}}
  real b = target();  // expected-error {{target() can be read only in}}
  a ~ normal(0, 1);  // expected-error {{'~' is allowed only in the model block}}
  target += 1;  // expected-error {{'target += ...' is allowed only in the model block}}
  jacobian += 1;  // expected-error {{'jacobian += ...' is allowed only in transformed parameters}}
}
