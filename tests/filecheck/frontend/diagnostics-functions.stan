// RUN: stan-opt %s --split-input-file --verify-diagnostics

// Functions return on every path, what they say, and are defined once.
functions {
  real f(real a) { if (a > 0) return 1; }  // expected-error {{'f' does not return a value on every path}}
  int g(real a) { return a; }  // expected-error {{'g' returns an int, but this is a real}}
  void h(real a) { return 1; }  // expected-error {{a value cannot be returned in 'h', which returns nothing}}
  real k(real a) { return; }  // expected-error {{'k' must return a real}}
  real endless(real a) { while (1) { if (a > 0) return a; } }
  real rejects(real a) { if (a > 0) return a; else reject("no"); }
}
model { return; }  // expected-error {{'return' is not inside a function}}

// -----
functions {
  real f(real a) { return a; }
  real f(real b) { return b; }  // expected-error {{'f(real)' is defined twice}}
  int f(real c) { return 1; }  // expected-error {{differ only in what they return}}
  real f(int d) { return d; }
  real exp(real a) { return a; }  // expected-error {{the library has this function already}}
  real reduce_sum(real a) { return a; }  // expected-error {{cannot be overloaded}}
  real declared(real a);  // expected-error {{'declared' is declared but not defined}}
}

// -----
// Names say what a function is for.
functions {
  real a_lpdf(int y) { return 1; }  // expected-error {{must be made of reals, but it is an int}}
  real b_lpmf(real y) { return 1; }  // expected-error {{must be made of ints, but it is a real}}
  vector c_lpdf(real y) { return [y]'; }  // expected-error {{'c_lpdf' must return a real, but it returns a vector}}
  real d_lupdf(real y) { return 1; }  // expected-error {{a function whose name ends in _lupdf cannot be defined}}
  void e(real y) { y ~ normal(0, 1); }  // expected-error {{'~' is allowed only in}}
  void e_lp(real y) { y ~ normal(0, 1); }
  void g() { e_lp(1); }  // expected-error {{functions whose name ends in _lp can be called only in}}
  void h() { jacobian += 1; }  // expected-error {{'jacobian += ...' is allowed only in}}
}

// -----
model {
  if (1) continue;  // expected-error {{'continue' is not inside a loop}}
  break;  // expected-error {{'break' is not inside a loop}}
  print(1);  // expected-warning {{this statement is never reached}}
}
