// RUN: stan-opt %s --split-input-file --verify-diagnostics

// The sizes of what a block declares are known from the data.
parameters { vector[2] p; real s; }
transformed parameters {
  vector[size(p)] a;  // expected-error {{sizes must be known from the data, but 'p' is declared in parameters}}
  int n;  // expected-error {{'n' cannot hold ints: transformed parameters are real}}
}
model {
  vector[size(p)] local;
}

// -----
parameters { int n; }  // expected-error {{'n' cannot hold ints: parameters are real}}

// -----
data {
  int<lower=0.5> n;  // expected-error {{the bound of an int must be an int}}
  vector[2.5] v;  // expected-error {{the size of a vector must be an int}}
  array[n, 1.5] real a;  // expected-error {{the size of an array must be an int}}
  matrix[1.5, 2] m;  // expected-error {{the number of rows must be an int}}
  real<lower=v> x;  // expected-error {{the lower bound must be a scalar or a real}}
  // expected-error @+1 {{a complex variable cannot have a constraint}}
  complex<offset=1> z;
  vector[poisson_rng(2)] r;  // expected-error {{sizes cannot be random}}
}

// -----
model {
  real<lower=0> b;  // expected-error {{a local variable cannot be constrained}}
}
