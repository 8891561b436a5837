// RUN: stan-opt %s --split-input-file --verify-diagnostics
// What has a place in the language but cannot be compiled yet is reported where it comes into the program, all at once.

functions {
  real f_lpdf(real x, vector m) {
    return 0;
  }
  real f_lcdf(real x, vector m) {
    return 0;
  }
  real f_lccdf(real x, vector m) {
    return 0;
  }
  void unused(real x, vector m) {
    print(x);
  }
}
parameters {
  real x;
  vector[2] v;
}
model {
  x ~ f(v) T[0, 1]; // expected-error {{truncation by 'f_lcdf' is not supported yet where its arguments must be converted}}
  complex z = 2i;
  x ~ f(v) T[0, 1]; // expected-error {{truncation by 'f_lcdf' is not supported yet where its arguments must be converted}}
}
