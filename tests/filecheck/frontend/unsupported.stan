// RUN: stan-opt %s --split-input-file --verify-diagnostics
// What has a place in the language but cannot be compiled yet is reported where it comes into the program, all at once.

functions {
  real unused(complex z) {
    return owens_t(1, 2);
  }
  real called(real x, array[] tuple(real, real) y) { // expected-error {{arrays of tuples are not supported yet}}
    return x;
  }
}
parameters {
  tuple(real<lower=0>, real) t; // expected-error {{parameters of tuple type are not supported yet}}
  real x;
}
transformed parameters {
  real b = lower_bound_jacobian(x, 0); // expected-error {{the function 'lower_bound_jacobian' is not supported yet}}
}
model {
  complex z = 2i; // expected-error {{complex numbers are not supported yet}}
  real u = called(x, {(x, x)}); // expected-error {{arrays of tuples are not supported yet}}
  x ~ von_mises(0, 1) T[0, ]; // expected-error {{the function 'von_mises_lccdf' is not supported yet}}
}

// -----

transformed data {
  tuple(vector[2], real) t;
  real r;
  t.1[2] = 3; // expected-error {{assigning to elements inside of a tuple is not supported yet}}
  (t.2, r) = (1, 2); // expected-error {{assigning to parts of a tuple while unpacking is not supported yet}}
}
