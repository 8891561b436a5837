// RUN: stan-opt %s --split-input-file --verify-diagnostics
// What has a place in the language but cannot be compiled yet is reported where it comes into the program, all at once.

functions {
  real unused(complex z) {
    return abs(complex_schur_decompose_t([[1.0]])[1, 1]);
  }
  real called(real x, complex y) {
    return x + abs(complex_schur_decompose_t([[1.0]])[1, 1]); // expected-error {{the function 'complex_schur_decompose_t' is not supported yet}}
  }
}
parameters {
  real x;
}
model {
  complex z = 2i;
  real u = called(x, z);
}
