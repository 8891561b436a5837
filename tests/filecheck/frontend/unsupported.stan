// RUN: stan-opt %s --split-input-file --verify-diagnostics
// What has a place in the language but cannot be compiled yet is reported where it comes into the program, all at once.

functions {
  real unused(complex z) {
    return owens_t(1, 2);
  }
  real called(real x, complex y) { // expected-error {{complex numbers are not supported yet}}
    return x;
  }
}
parameters {
  real x;
}
transformed parameters {
  real b = lower_bound_jacobian(x, 0); // expected-error {{the function 'lower_bound_jacobian' is not supported yet}}
}
model {
  complex z = 2i; // expected-error {{complex numbers are not supported yet}}
  real u = called(x, x);
}
